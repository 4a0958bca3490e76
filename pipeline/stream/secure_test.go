package stream_test

import (
	"crypto/tls"
	"errors"
	"runtime"
	"testing"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/transport/transporttest"
)

// A broker that offers at most TLS 1.2 is refused, and one with TLS 1.3 is accepted, whether the
// URL or the broker requires TLS. A broker that requires a certificate from the client gets the
// configured one.
func TestTLS13IsTheLeast(t *testing.T) {
	authority, stranger := transporttest.New(t), transporttest.New(t)
	mutual := authority.Server(0)
	mutual.ClientAuth, mutual.ClientCAs = tls.RequireAndVerifyClientCert, authority.Roots
	trusting := stream.Config{CAFile: authority.CAFile}
	with := func(pair *transporttest.Authority) stream.Config {
		return stream.Config{CAFile: authority.CAFile, CertFile: pair.CertFile, KeyFile: pair.KeyFile}
	}
	for name, c := range map[string]struct {
		server   *tls.Config
		client   stream.Config
		accepted bool
	}{
		"TLS 1.3":                      {authority.Server(0), trusting, true},
		"TLS 1.3, client's pair":       {authority.Server(0), with(authority), true},
		"TLS 1.2":                      {authority.Server(tls.VersionTLS12), trusting, false},
		"an unknown authority":         {authority.Server(0), stream.Config{}, false},
		"mTLS":                         {mutual, with(authority), true},
		"mTLS, no client's pair":       {mutual, trusting, false},
		"mTLS, the pair of a stranger": {mutual, with(stranger), false},
	} {
		broker := brokertest.NewTLS(t, c.server)
		c.client.URL = broker.URL()
		client, err := stream.Connect(t.Context(), c.client)
		if err == nil {
			err = errors.Join(client.EnsureTopology(t.Context()), client.Secure(), client.Close())
		}
		if (err == nil) != c.accepted {
			t.Errorf("%s: %v, want it accepted: %v", name, err, c.accepted)
		}
	}
}

// A loopback connection is secure without TLS. No connection is secure while it is lost.
func TestSecureWithinThisMachine(t *testing.T) {
	broker := brokertest.New(t)
	client := connect(t, broker)
	if err := client.Secure(); err != nil {
		t.Errorf("on loopback: %v", err)
	}
	broker.Stop()
	for client.Secure() == nil { // until the client notices
		runtime.Gosched()
	}
	if err := client.Secure(); !errors.Is(err, stream.ErrUnavailable) {
		t.Errorf("while the connection is lost: %v", err)
	}
	broker.Start()
}
