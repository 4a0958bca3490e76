package transport

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"slices"
)

// HeaderFrom is the header in which a request to ingest says which program makes it. It proves nothing.
const HeaderFrom = "Plumbline-From"

// Trust returns the configuration of a client that trusts the certificates of a file (PEM): servers with a
// certificate that one of them signed, and a server with one of them itself, under any name. It is nil if no file is
// given: the client trusts the system's authorities.
func Trust(file string) (*tls.Config, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	var own [][]byte
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		roots.AddCert(certificate)
		own = append(own, certificate.Raw)
	}
	if own == nil {
		return nil, fmt.Errorf("%s has no certificate in PEM", file)
	}
	return &tls.Config{
		MinVersion:         MinimumTLS,
		InsecureSkipVerify: true, // VerifyConnection does it
		VerifyConnection: func(state tls.ConnectionState) error {
			leaf := state.PeerCertificates[0]
			if slices.ContainsFunc(own, func(raw []byte) bool { return bytes.Equal(raw, leaf.Raw) }) {
				return nil
			}
			between := x509.NewCertPool()
			for _, certificate := range state.PeerCertificates[1:] {
				between.AddCert(certificate)
			}
			if _, err := leaf.Verify(x509.VerifyOptions{DNSName: state.ServerName, Roots: roots, Intermediates: between}); err != nil {
				return &tls.CertificateVerificationError{UnverifiedCertificates: state.PeerCertificates, Err: err}
			}
			return nil
		},
	}, nil
}
