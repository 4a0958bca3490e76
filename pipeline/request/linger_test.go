package request

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/pipeline/auth"
)

// A client that sends its whole body before it reads gets the answer to a body that is too large,
// not a reset connection. A client that asked first gets it at once.
func TestTooLargeIsAnswered(t *testing.T) {
	const limit, size = 64 << 10, 32 << 20 // more than the buffers of a connection
	router := New(Config{Memory: MinShare, Timeout: time.Minute, Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry()})
	router.Public("POST /", func(w http.ResponseWriter, r *http.Request, _ auth.Grant) (int, error) {
		_, err := router.Document(w, r, limit, TypeJSON)
		return http.StatusOK, err
	})
	server := httptest.NewServer(router.Mux)
	defer server.Close()
	body := strings.Repeat(" ", size)
	for name, c := range map[string]struct{ header, body string }{
		"declared": {fmt.Sprintf("Content-Length: %d", size), body},
		"chunked":  {"Transfer-Encoding: chunked", fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", size, body)},
		"asked":    {fmt.Sprintf("Expect: 100-continue\r\nContent-Length: %d", size), ""},
		"endless":  {fmt.Sprintf("Content-Length: %d", lingerBytes+1), ""},
	} {
		connection, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = connection.Close() }()
		if err := connection.SetDeadline(time.Now().Add(router.Pace.Grace - 2*time.Second)); err != nil { // then a body that does not come is given up
			t.Fatal(err)
		}
		head := "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" + c.header + "\r\n\r\n"
		if _, err := io.WriteString(connection, head+c.body); err != nil {
			t.Errorf("%s: sent a part: %v", name, err)
			continue
		}
		answer, err := http.ReadResponse(bufio.NewReader(connection), nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: answered %s", name, answer.Status)
		}
	}
}
