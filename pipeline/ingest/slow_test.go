package ingest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/request"
)

// slowly sends the head of a request with a body of the given length, and only a part of that
// body. It returns when the stage reads it.
func (r *rig) slowly(path string, length int, sent string, headers ...string) net.Conn {
	r.t.Helper()
	conn, err := new(net.Dialer).DialContext(r.t.Context(), "tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: ingest\r\nContent-Length: %d\r\nExpect: 100-continue\r\n", path, length)
	if _, err := io.WriteString(conn, head+strings.Join(headers, "\r\n")+"\r\n\r\n"); err != nil {
		r.t.Fatal(err)
	}
	line := make([]byte, len("HTTP/1.1 100 Continue\r\n\r\n"))
	if _, err := io.ReadFull(conn, line); err != nil || !strings.HasPrefix(string(line), "HTTP/1.1 100 ") {
		r.t.Fatalf("%q, error %v", line, err)
	}
	if _, err := io.WriteString(conn, sent); err != nil {
		r.t.Fatal(err)
	}
	return conn
}

// Bodies that are announced and do not arrive take no memory from others. This holds for traces
// and for documents.
func TestSlowBodiesReserveNoMemory(t *testing.T) {
	r := start(t, configured(func(cfg *Config) { cfg.MaxInFlightBytes = windowBytes }))
	for i := range 100 {
		r.slowly("/v1/traces", 1<<20, `{"trace_id":`, ndjson)
		r.slowly(fmt.Sprintf("/v1/cards/ac-%d/revoke", i), 10_000, `{"reason":`, "Content-Type: application/json")
	}
	if answer := r.post(body(traces("did:web:a", 200)...)); answer.code != http.StatusOK {
		t.Errorf("%d %s", answer.code, answer.text)
	}
	r.stored(200)
}

// A body that is slower than the pace is cut off, for traces and for documents, and the answer
// says so. The lines that arrived completely are stored.
func TestSlowBodiesAreCutOff(t *testing.T) {
	r := start(t, wired(func(s *server) { s.router.Pace = request.Pace{Grace: 3 * time.Second, Rate: 1 << 20} }))
	for _, conn := range []net.Conn{
		r.slowly("/v1/traces", 1<<20, body(trace("did:web:a", "1"))+"{", ndjson),
		r.slowly("/v1/cards/ac/revoke", 10_000, `{"reason":`, "Content-Type: application/json"),
	} {
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusRequestTimeout || !strings.Contains(string(text), "arrives too slowly") {
			t.Errorf("%d %s, error %v", answer.StatusCode, text, err)
		}
	}
	r.stored(1)
}
