package ingest

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/pipeline/transport"
)

// Handshake messages are refused if they would travel unencrypted. Traces are not refused.
func TestHandshakeOverInsecureConnections(t *testing.T) {
	r := start(t, wired(func(s *server) { s.insecure = fmt.Errorf("%w: set something", transport.ErrInsecure) }))
	if answer := r.send(http.MethodPost, "/v1/handshake/b", strings.NewReader("{}"), "Content-Type: application/json"); answer.code != http.StatusUpgradeRequired {
		t.Errorf("a message: %d %s", answer.code, answer.text)
	}
	if answer := r.post(body(trace("a", "1"))); answer.code != http.StatusOK {
		t.Errorf("traces: %d %s", answer.code, answer.text)
	}
}

func TestListenerOfTheHandshake(t *testing.T) {
	world, here := &net.TCPAddr{IP: net.IPv4zero, Port: 80}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}
	for _, c := range []struct {
		listener    net.Addr
		certificate string
		want        bool
	}{{here, "", true}, {world, "", false}, {world, "cert.pem", true}, {&net.TCPAddr{IP: net.IPv6loopback}, "", true}} {
		cfg := Default()
		cfg.TLSCertFile = c.certificate
		err := cfg.secure(c.listener)
		if (err == nil) != c.want || err != nil && (!errors.Is(err, transport.ErrInsecure) || !strings.Contains(err.Error(), "tls_cert_file")) {
			t.Errorf("%s with certificate %q: %v", c.listener, c.certificate, err)
		}
	}
}
