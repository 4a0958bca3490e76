package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
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
	address := h.config.URL + "/v1/handshake/" + url.PathEscape(responder)
	response, err := h.post(ctx, address, message)
	if err != nil {
		return nil, err
	}
	body, err := readAnswer(response)
	if err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", address, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, refusal(response, body)
	}
	return body, nil
}

// post posts a JSON body.
func (h *HTTP) post(ctx context.Context, address string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if h.config.Token != "" {
		request.Header.Set("Authorization", "Bearer "+h.config.Token)
	}
	return h.client.Do(request)
}

// readAnswer reads one byte more than a message may have, for the final newline.
func readAnswer(response *http.Response) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(response.Body, schema.MaxHandshakeBytes+2))
	return body, errors.Join(err, response.Body.Close())
}

// Close closes idle connections.
func (h *HTTP) Close() { h.client.CloseIdleConnections() }
