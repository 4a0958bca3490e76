package request

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/plumbline/plumbline/pipeline/problem"
)

// Pace is the minimum speed of a body: after Grace, Rate bytes for each second that the service
// waited for it. A slower body would keep memory and a connection from others.
//
// A limiter such as x/time/rate sets an upper bound on a speed and cannot express this lower one.
type Pace struct {
	Grace time.Duration
	Rate  int64
}

var leastPace = Pace{Grace: 10 * time.Second, Rate: 16 << 10}

// pacedBody is a body that must keep to a pace, and arrive within the request's time.
type pacedBody struct {
	io.ReadCloser
	pace    Pace
	control *http.ResponseController
	until   time.Time
	read    int64
	waited  time.Duration
}

// Begin limits to the grace how long an unread body holds its connection: the server reads it
// before it answers.
func (p Pace) Begin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(p.Grace)) // if it supports deadlines
		}
		next.ServeHTTP(w, r)
	})
}

// hold applies this pace to the request's body.
func (p Pace) hold(w http.ResponseWriter, r *http.Request, limit time.Duration) {
	r.Body = &pacedBody{ReadCloser: r.Body, pace: p, control: http.NewResponseController(w), until: time.Now().Add(limit)}
}

// Read reads what has arrived. The time between reads, when the body waits for the service, does
// not count.
func (b *pacedBody) Read(into []byte) (int, error) {
	began := time.Now()
	allowed := b.pace.Grace + time.Duration(b.read*int64(time.Second)/b.pace.Rate) - b.waited
	until := began.Add(allowed)
	slow := until.Before(b.until)
	if !slow {
		until = b.until
	}
	if err := b.deadline(until); err != nil {
		return 0, err
	}
	n, err := b.ReadCloser.Read(into)
	b.read += int64(n)
	b.waited += time.Since(began)
	// The pace counts during a read only. After the last read the server watches the connection,
	// which may be silent. An HTTP/2 stream never recovers from a deadline that passes between
	// two reads. After an error the deadline stays, because the server reads the rest of the body
	// before it ends the request.
	if err == nil || errors.Is(err, io.EOF) {
		if failed := b.deadline(b.until); failed != nil {
			return n, failed
		}
	}
	if slow && errors.Is(err, os.ErrDeadlineExceeded) {
		return n, problem.New(http.StatusRequestTimeout, "too_slow",
			"the body arrives too slowly: after %s it must have %d bytes for each second: send less in a request, or over a faster connection", b.pace.Grace, b.pace.Rate)
	}
	return n, err
}

// deadline sets the end of a read, if the connection supports it.
func (b *pacedBody) deadline(at time.Time) error {
	err := b.control.SetReadDeadline(at)
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}
