package ingest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// The time that a body waits while its earlier lines are committed is ours. It must not count
// as the client's, over HTTP/2 either: the deadline of a stream that has passed cannot be
// taken back.
func TestPaceDoesNotCountWhatWeTake(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		p := pace{grace: 200 * time.Millisecond, rate: 1 << 20}
		begun := make(chan struct{})
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			p.hold(w, r, time.Minute)
			first := make([]byte, 5)
			if _, err := io.ReadFull(r.Body, first); err != nil {
				t.Errorf("HTTP/2 %v: the first line: %v", http2, err)
			}
			time.Sleep(2 * p.grace) // the broker is slow
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
