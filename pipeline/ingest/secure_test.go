package ingest

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/pipeline/transport/transporttest"
)

// secured runs a stage that serves HTTPS, and waits until it is ready.
func secured(t *testing.T, authority *transporttest.Authority, alter func(*Config)) *rig {
	t.Helper()
	r := prepare(t, configured(func(cfg *Config) {
		cfg.TLSCertFile, cfg.TLSKeyFile = authority.CertFile, authority.KeyFile
		alter(cfg)
	}))
	r.url = "https" + strings.TrimPrefix(r.url, "http")
	r.awaitReady()
	return r
}

// as makes the following requests use a client with these settings.
func (r *rig) as(client *tls.Config, certificates ...tls.Certificate) {
	r.http.CloseIdleConnections()
	client.Certificates = certificates
	r.http.Transport = &http.Transport{TLSClientConfig: client, ForceAttemptHTTP2: true}
}

func TestTLS(t *testing.T) {
	authority := transporttest.New(t)
	r := secured(t, authority, func(*Config) {})
	r.as(authority.Client(0))
	if answer := r.post(body(trace("a", "1"))); answer.code != http.StatusOK {
		t.Errorf("%d %s", answer.code, answer.text)
	}
	r.as(authority.Client(tls.VersionTLS12))
	if answer, err := r.http.Get(r.url + "/v1/schemas"); err == nil {
		_ = answer.Body.Close()
		t.Error("a client with TLS 1.2 is accepted")
	}
}

// If authorities for publishers are configured, only a client with a certificate from them is
// admitted. That holds for every URL, including those for operators.
func TestMutualTLS(t *testing.T) {
	authority, publishers := transporttest.New(t), transporttest.New(t)
	r := secured(t, authority, func(cfg *Config) { cfg.TLSClientCAFile = publishers.CAFile })
	for name, certificates := range map[string][]tls.Certificate{"no certificate": nil, "one of another authority": {authority.Pair}} {
		r.as(authority.Client(0), certificates...)
		for _, path := range []string{"/v1/schemas", "/healthz", "/metrics"} {
			if answer, err := r.http.Get(r.url + path); err == nil {
				_ = answer.Body.Close()
				t.Errorf("%s: %s is answered with %s", name, path, answer.Status)
			}
		}
	}
	r.as(authority.Client(tls.VersionTLS12), publishers.Pair)
	if answer, err := r.http.Get(r.url + "/v1/schemas"); err == nil {
		_ = answer.Body.Close()
		t.Error("a certificate over TLS 1.2 is accepted")
	}
	r.as(authority.Client(0), publishers.Pair)
	if answer := r.post(body(trace("a", "1"))); answer.code != http.StatusOK {
		t.Errorf("a publisher's certificate: %d %s", answer.code, answer.text)
	}
	r.stored(1)
}
