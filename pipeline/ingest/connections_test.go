package ingest

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/admission"
	"github.com/plumbline/plumbline/pipeline/request"
	"github.com/plumbline/plumbline/pipeline/transport/transporttest"
)

// from returns a client that sends from another address of this machine.
func from(t *testing.T, address string) *http.Client {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	transport := &http.Transport{DialContext: dialer.DialContext}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// hold opens a connection from 127.0.0.1 whose request never ends.
func (r *rig) hold() net.Conn {
	r.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, "POST /v1/traces HTTP/1.1\r\nHost: "); err != nil {
		r.t.Fatal(err)
	}
	return conn
}

// An address with more than its share of connections is refused with that reason. Others can
// publish, and operators are answered from every address. A closed connection makes room for a
// new one.
func TestConnectionsHaveShares(t *testing.T) {
	r := start(t, configured(func(cfg *Config) { cfg.Connections = admission.Config{MaxConnections: 16, AddressShare: 25} }))
	var held []net.Conn
	for range 4 {
		held = append(held, r.hold())
	}
	long := body(traces("did:web:a", 4000)...) // nobody reads it
	answer := r.post(long)
	if p := answer.problem(t); answer.code != http.StatusServiceUnavailable || answer.header.Get("Retry-After") == "" ||
		!strings.Contains(p.Message, "127.0.0.1 has its share of the connections, 4 of 16: repeat the request") {
		t.Errorf("%d %v %s", answer.code, answer.header, answer.text)
	}
	for range 50 {
		r.hold() // more than the limit
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		if answer := r.send(http.MethodGet, path, nil); answer.code != http.StatusOK {
			t.Errorf("%s: %d %s", path, answer.code, answer.text)
		}
	}
	own := r.http
	r.http = from(t, "127.0.0.2")
	if answer := r.post(body(trace("did:web:b", "1"))); answer.code != http.StatusOK {
		t.Errorf("from another address: %d %s", answer.code, answer.text)
	}
	if metrics := r.send(http.MethodGet, "/metrics", nil); !strings.Contains(metrics.text, `plumbline_connections_refused_total{bound="address",listener="publishers",stage="ingest"} 54`) ||
		!strings.Contains(metrics.text, `plumbline_connections{listener="publishers",stage="ingest"} 5`) {
		t.Errorf("metrics: %s", metrics.text)
	}
	r.http = own
	_ = held[0].Close()
	r.await(func() bool { return r.post(body(trace("did:web:a", "1"))).code == http.StatusOK }) // once that one was read
	r.stored(2)
}

// An unread body that is announced and does not arrive holds its connection only for the grace,
// even if the request is refused.
func TestUnreadBodiesHoldNoConnection(t *testing.T) {
	r := start(t, wired(func(s *server) { s.router.Pace = request.Pace{Grace: 50 * time.Millisecond, Rate: 1} }))
	for request, want := range map[string]int{
		"GET /healthz":    http.StatusOK,
		"GET /v1/schemas": http.StatusOK,
		"POST /v1/traces": http.StatusUnsupportedMediaType,
		"PUT /nowhere":    http.StatusNotFound,
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, request+" HTTP/1.1\r\nHost: ingest\r\nContent-Length: 10\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != want || !answer.Close {
			t.Errorf("%s: %s, the connection ends: %v, error %v", request, answer.Status, answer.Close, err)
		}
	}
}

// An HTTP/2 connection has a limited number of concurrent requests.
func TestStreamsOfAConnectionAreBounded(t *testing.T) {
	authority := transporttest.New(t)
	r := secured(t, authority, func(*Config) {})
	secure := authority.Client(0)
	secure.NextProtos = []string{"h2"}
	conn, err := tls.Dial("tcp", strings.TrimPrefix(r.url, "https://"), secure)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"); err != nil {
		t.Fatal(err)
	}
	head := make([]byte, 9) // of the server's first frame, its settings (RFC 9113, section 6.5)
	if _, err := io.ReadFull(conn, head); err != nil || head[3] != 4 {
		t.Fatalf("a frame of type %d, error %v", head[3], err)
	}
	settings := make([]byte, int(head[1])<<8|int(head[2]))
	if _, err := io.ReadFull(conn, settings); err != nil {
		t.Fatal(err)
	}
	for i := 0; i+6 <= len(settings); i += 6 {
		if binary.BigEndian.Uint16(settings[i:]) == 3 { // SETTINGS_MAX_CONCURRENT_STREAMS
			if n := binary.BigEndian.Uint32(settings[i+2:]); n != maxStreams {
				t.Errorf("%d streams, want %d", n, maxStreams)
			}
			return
		}
	}
	t.Errorf("the settings %x do not limit streams", settings)
}
