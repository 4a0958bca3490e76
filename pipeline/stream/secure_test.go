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

// A broker that offers TLS 1.2 at best is refused; one with TLS 1.3 is not,
// whether the URL asks for TLS or the broker does.
func TestTLS13IsTheLeast(t *testing.T) {
	authority := transporttest.New(t)
	for name, c := range map[string]struct {
		most  uint16
		files stream.Config
		taken bool
	}{
		"TLS 1.3":                {0, stream.Config{CAFile: authority.CAFile}, true},
		"TLS 1.3, client's pair": {0, stream.Config{CAFile: authority.CAFile, CertFile: authority.CertFile, KeyFile: authority.KeyFile}, true},
		"TLS 1.2":                {tls.VersionTLS12, stream.Config{CAFile: authority.CAFile}, false},
		"an unknown authority":   {0, stream.Config{}, false},
	} {
		broker := brokertest.NewTLS(t, authority.Server(c.most))
		c.files.URL = broker.URL()
		client, err := stream.Connect(t.Context(), c.files)
		if err == nil {
			err = errors.Join(client.EnsureTopology(t.Context()), client.Secure(), client.Close())
		}
		if (err == nil) != c.taken {
			t.Errorf("%s: %v, want it taken: %v", name, err, c.taken)
		}
	}
}

// Loopback is secure as it is, and nothing is while the connection is lost.
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
