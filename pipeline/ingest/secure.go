package ingest

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/plumbline/plumbline/pipeline/transport"
)

// certificate returns the configuration for HTTPS, or nil for plain HTTP. TLS 1.3 is the minimum,
// because handshake messages need it (AAP section 9.4).
func (c *Config) certificate() (*tls.Config, error) {
	if c.TLSCertFile == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(c.TLSCertFile, c.TLSKeyFile)
	if err != nil {
		return nil, fmt.Errorf("tls_cert_file %s, tls_key_file %s: %w", c.TLSCertFile, c.TLSKeyFile, err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: transport.MinimumTLS}, nil
}

// demandCertificates requires client certificates of the authorities in tls_client_ca_file, if
// that is configured.
func (c *Config) demandCertificates(secure *tls.Config) error {
	if c.TLSClientCAFile == "" || secure == nil {
		return nil
	}
	text, err := os.ReadFile(c.TLSClientCAFile)
	if err != nil {
		return err
	}
	secure.ClientCAs, secure.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if !secure.ClientCAs.AppendCertsFromPEM(text) {
		return fmt.Errorf("%s: has no certificate in PEM", c.TLSClientCAFile)
	}
	return nil
}
