package ingest

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"
)

// pace is how quickly a body must arrive: after grace, at least so many bytes for each
// second that was waited for it. A slower one takes memory and a connection from others.
type pace struct {
	grace time.Duration
	rate  int64
}

var leastPace = pace{grace: 10 * time.Second, rate: 16 << 10}

// pacedBody is a body that is held to a pace, and to the end of the request's time.
type pacedBody struct {
	io.ReadCloser
	pace    pace
	control *http.ResponseController
	until   time.Time
	read    int64
	waited  time.Duration
}

// begin lets a body that no handler reads hold its connection for the grace at most: the
// server reads it before it answers.
func (p pace) begin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(p.grace)) // of a connection that has deadlines
		}
		next.ServeHTTP(w, r)
	})
}

// hold lets the request's body be read at this pace.
func (p pace) hold(w http.ResponseWriter, r *http.Request, limit time.Duration) {
	r.Body = &pacedBody{ReadCloser: r.Body, pace: p, control: http.NewResponseController(w), until: time.Now().Add(limit)}
}

// Read reads what has arrived. The time that the body waits for us does not count.
func (b *pacedBody) Read(into []byte) (int, error) {
	began := time.Now()
	allowed := b.pace.grace + time.Duration(b.read*int64(time.Second)/b.pace.rate) - b.waited
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
	// Until the next read nothing is waited for: after the last one the server watches the
	// connection, which may be silent, and an HTTP/2 stream never recovers from a deadline that
	// passed while we were busy.
	if failed := b.deadline(b.until); failed != nil && err == nil {
		err = failed
	}
	if slow && errors.Is(err, os.ErrDeadlineExceeded) {
		return n, problemf(http.StatusRequestTimeout, "too_slow",
			"the body arrives too slowly: after %s it must have %d bytes for each second: send less in a request, or over a better line", b.pace.grace, b.pace.rate)
	}
	return n, err
}

// deadline ends a read at that time, where the connection can.
func (b *pacedBody) deadline(at time.Time) error {
	err := b.control.SetReadDeadline(at)
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}
