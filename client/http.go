package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/plumbline/plumbline/pipeline/transport"
	"github.com/plumbline/plumbline/schema"
)

// HTTPConfig configures the connection to a service.
type HTTPConfig struct {
	URL          string            // https://host:port; http:// on loopback only
	Token        string            // with the scope "handshake", "messages:write" or "runtime"; empty if the service requires none
	Roots        *x509.CertPool    // nil: the system's
	Certificates []tls.Certificate // of the client, if the service requires one
}

// HTTP is a Transport to one service, which answers for any number of agents.
type HTTP struct {
	config HTTPConfig
	client http.Client
}

// NewHTTP returns a transport. It does not connect yet. The error wraps
// ErrInsecure for a plain http:// address of another machine.
func NewHTTP(config HTTPConfig) (*HTTP, error) {
	u, err := url.Parse(config.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("the service's address %q: want https://host:port", config.URL)
	case u.Scheme == "http" && !transport.Loopback(u.Host):
		return nil, fmt.Errorf("%w: %s is neither: want https://", ErrInsecure, config.URL)
	}
	config.URL = strings.TrimSuffix(config.URL, "/")
	h := &HTTP{config: config}
	h.client.Transport = &http.Transport{
		Proxy:           http.ProxyFromEnvironment,
		TLSClientConfig: &tls.Config{RootCAs: config.Roots, Certificates: config.Certificates, MinVersion: transport.MinimumTLS},
	}
	// A redirection could leave TLS.
	h.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return h, nil
}

// Exchange posts the message to the responder's address.
func (h *HTTP) Exchange(ctx context.Context, responder, _ string, message []byte) ([]byte, error) {
	// One byte more than a message may have, and the final newline.
	return h.post(ctx, "/v1/handshake/"+url.PathEscape(responder), message, schema.MaxHandshakeBytes+2)
}

// post posts a JSON body and returns the body of the answer, at most limit bytes. The error is a *Problem if the
// service refused the request.
func (h *HTTP) post(ctx context.Context, path string, body []byte, limit int64) ([]byte, error) {
	got, err := request(ctx, &h.client, h.config.Token, http.MethodPost, h.config.URL+path, "application/json", body, limit)
	if err != nil {
		return nil, err
	}
	if got.code >= http.StatusMultipleChoices {
		return nil, got.problem()
	}
	return got.body, nil
}

// Close closes idle connections.
func (h *HTTP) Close() { h.client.CloseIdleConnections() }
