package transport_test

import (
	"crypto/tls"
	"errors"
	"testing"

	"github.com/plumbline/plumbline/pipeline/transport"
)

func TestLoopback(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:8080": true, "127.0.0.1": true, "127.9.9.9:1": true, "[::1]:8080": true, "::1": true, "localhost:80": true, "localhost": true,
		"0.0.0.0:8080": false, ":8080": false, "[::]:8080": false, "10.0.0.1:4222": false, "broker.example:4222": false, "": false,
		"localhost.example:80": false, "127.0.0.1.example:80": false,
	} {
		if got := transport.Loopback(address); got != want {
			t.Errorf("%q: %v, want %v", address, got, want)
		}
	}
}

func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		state *tls.ConnectionState
		want  bool
	}{
		"plain":   {nil, false},
		"TLS 1.2": {&tls.ConnectionState{Version: tls.VersionTLS12}, false},
		"TLS 1.3": {&tls.ConnectionState{Version: tls.VersionTLS13}, true},
	} {
		if err := transport.Check(c.state); (err == nil) != c.want || err != nil && !errors.Is(err, transport.ErrInsecure) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A connection that leaves this machine must be TLS 1.3, to a server that requires it of every
// client.
func TestCheckBroker(t *testing.T) {
	old, current := &tls.ConnectionState{Version: tls.VersionTLS12}, &tls.ConnectionState{Version: tls.VersionTLS13}
	for name, c := range map[string]struct {
		address  string
		demanded bool
		state    *tls.ConnectionState
		want     bool
	}{
		"loopback, plain":            {"127.0.0.1:4222", false, nil, true},
		"another machine, plain":     {"10.0.0.2:4222", false, nil, false},
		"another machine, TLS 1.2":   {"10.0.0.2:4222", true, old, false},
		"another machine, TLS 1.3":   {"10.0.0.2:4222", true, current, true},
		"a server that takes plain":  {"10.0.0.2:4222", false, current, false},
		"a server that demands, but": {"10.0.0.2:4222", true, nil, false},
	} {
		err := transport.CheckBroker(c.address, c.demanded, c.state)
		if (err == nil) != c.want || err != nil && !errors.Is(err, transport.ErrInsecure) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
