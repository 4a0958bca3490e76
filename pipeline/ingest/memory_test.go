package ingest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/pipelinetest/bubble"
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
func TestSlowBodiesLeaveRoom(t *testing.T) {
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
	r := start(t, wired(func(s *server) { s.pace = pace{grace: 3 * time.Second, rate: 1 << 20} }))
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
		chunk := make([]byte, 4*leastPace.rate)
		for i := range 5 {
			asked := time.Now()
			if _, err := body.Read(chunk); err != nil {
				t.Fatal(err)
			}
			if allowed := leastPace.grace + time.Duration(3*i)*time.Second; during.Sub(asked) != allowed || !noted.last.Equal(body.until) {
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

// The requests of one token use at most its share of the memory. The requests of all tokens can
// use all of it. The rejection says which limit was reached.
func TestSharesOfMemory(t *testing.T) {
	m := newMemory(4 * windowBytes)
	var held []*holding
	for i := range 4 {
		h := m.hold(fmt.Sprintf("token %d", i))
		if p := h.grow(t.Context(), windowBytes); p != nil {
			t.Fatal(p)
		}
		held = append(held, h)
		soon, end := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer end()
		another := m.hold(h.who)
		if p := another.grow(soon, 1); p == nil || !strings.Contains(p.Message, "the requests of "+h.who) || another.tryGrow(1) {
			t.Errorf("beyond the share of %s: %v", h.who, p)
		}
		another.release()
	}
	soon, end := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer end()
	last := m.hold("somebody")
	if p := last.grow(soon, 1); p == nil || !strings.Contains(p.Message, "all the memory") || last.tryGrow(1) {
		t.Errorf("beyond all: %v", p)
	}
	held[0].release()
	if !last.tryGrow(windowBytes) {
		t.Error("what was released is not free")
	}
	for _, h := range append(held[1:], last) {
		h.release()
	}
	if len(m.shares) != 0 || !m.whole.TryAcquire(m.size) {
		t.Errorf("left are the shares %v", m.shares)
	}
}

// Requests with a token use its share. Other requests use the share of their address.
func TestWhoseShare(t *testing.T) {
	for _, tokens := range []bool{false, true} {
		change := []func(*Config, *server){configured(func(cfg *Config) { cfg.MaxInFlightBytes = 4 * windowBytes })}
		want, headers := "address 127.0.0.1", []string{ndjson}
		if tokens {
			change = append(change, withTokens(t, "secret * traces:write"))
			want, headers = `token "entry-0"`, append(headers, "Authorization: Bearer secret")
		}
		r := start(t, change...)
		r.slowly("/v1/traces", 1<<20, "{", headers...)
		r.server.memory.mu.Lock()
		if _, ok := r.server.memory.shares[want]; !ok || len(r.server.memory.shares) != 1 {
			t.Errorf("shares of %v, want that of %s", r.server.memory.shares, want)
		}
		r.server.memory.mu.Unlock()
	}
}
