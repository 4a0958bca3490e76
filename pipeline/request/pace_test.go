package request

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/pipelinetest/bubble"
)

// The time that a body waits while its earlier lines are committed is ours. It must not count
// as the client's, over HTTP/2 either: the deadline of a stream that has passed cannot be
// taken back.
func TestPaceExcludesTheServicesTime(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		p := Pace{Grace: 200 * time.Millisecond, Rate: 1 << 20}
		begun := make(chan struct{})
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			p.hold(w, r, time.Minute)
			first := make([]byte, 5)
			if _, err := io.ReadFull(r.Body, first); err != nil {
				t.Errorf("HTTP/2 %v: the first line: %v", http2, err)
			}
			time.Sleep(2 * p.Grace) // the broker is slow
			close(begun)
			rest, err := io.ReadAll(r.Body)
			if err != nil || string(rest) != "second" {
				t.Errorf("HTTP/2 %v: read %q, %v", http2, rest, err)
			}
		}))
		server.EnableHTTP2 = http2
		server.StartTLS()
		defer server.Close()
		body, client := io.Pipe()
		go func() {
			_, _ = io.Copy(client, strings.NewReader("first"))
			<-begun
			_, _ = io.Copy(client, strings.NewReader("second"))
			_ = client.Close()
		}()
		response, err := server.Client().Post(server.URL, "text/plain", body)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if got := response.ProtoMajor == 2; got != http2 {
			t.Errorf("HTTP/2 is %v, want %v", got, http2)
		}
	}
}

// deadlines records the last read deadline.
type deadlines struct {
	http.ResponseWriter
	last time.Time
}

// SetReadDeadline records the deadline.
func (d *deadlines) SetReadDeadline(at time.Time) error {
	d.last = at
	return nil
}

// The time in which a body waits for the service does not count against its pace. The time in
// which the service waits for the body does.
func TestPaceCountsTheSender(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		noted, began := new(deadlines), time.Now()
		var during time.Time // the deadline of a read
		slow := readerFunc(func(into []byte) (int, error) {
			during = noted.last
			time.Sleep(time.Second)
			return len(into), nil
		})
		body := &pacedBody{ReadCloser: io.NopCloser(slow), pace: leastPace, until: began.Add(24 * time.Hour), control: http.NewResponseController(noted)}
		chunk := make([]byte, 4*leastPace.Rate)
		for i := range 5 {
			asked := time.Now()
			if _, err := body.Read(chunk); err != nil {
				t.Fatal(err)
			}
			if allowed := leastPace.Grace + time.Duration(3*i)*time.Second; during.Sub(asked) != allowed || !noted.last.Equal(body.until) {
				t.Errorf("read %d may take %v, want %v; after it %v", i, during.Sub(asked), allowed, noted.last)
			}
			time.Sleep(time.Hour)
		}
		body.until = time.Now().Add(time.Second)
		if _, err := body.Read(chunk); err != nil || !during.Equal(body.until) {
			t.Errorf("at the end of the request: %v, %v", noted.last, err)
		}
		body.until = time.Now().Add(time.Hour)
		body.ReadCloser = io.NopCloser(readerFunc(func([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }))
		if _, err := body.Read(chunk); err == nil || noted.last.Equal(body.until) {
			t.Errorf("after a body that is too slow: %v, %v", noted.last, err)
		}
		body.ReadCloser = http.NoBody
		if _, err := body.Read(chunk); !errors.Is(err, io.EOF) || !noted.last.Equal(body.until) {
			t.Errorf("after the end of the body: %v, %v", noted.last, err)
		}
	})
}

type readerFunc func([]byte) (int, error)

// Read calls the function.
func (f readerFunc) Read(into []byte) (int, error) { return f(into) }
