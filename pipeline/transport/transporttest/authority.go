// Package transporttest creates a certificate authority for a test, and a certificate for this
// machine's loopback, as the files with which services are configured.
package transporttest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority is a certificate authority with the certificate that it issued.
type Authority struct {
	CAFile, CertFile, KeyFile string // PEM
	Roots                     *x509.CertPool
	Pair                      tls.Certificate
}

// New creates an authority that exists as long as the test.
func New(t testing.TB) *Authority {
	t.Helper()
	dir := t.TempDir()
	a := &Authority{CAFile: filepath.Join(dir, "ca.pem"), CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem"), Roots: x509.NewCertPool()}
	ca := template(1, "the test's authority")
	ca.IsCA, ca.BasicConstraintsValid, ca.KeyUsage = true, true, x509.KeyUsageCertSign
	caKey := newKey(t)
	caDER := sign(t, ca, ca, caKey, caKey)
	leaf := template(2, "loopback")
	leaf.DNSNames, leaf.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	leafKey := newKey(t)
	leafDER := sign(t, leaf, ca, leafKey, caKey)

	private, err := x509.MarshalPKCS8PrivateKey(leafKey)
	if err != nil {
		t.Fatal(err)
	}
	write(t, a.CAFile, "CERTIFICATE", caDER)
	write(t, a.CertFile, "CERTIFICATE", leafDER)
	write(t, a.KeyFile, "PRIVATE KEY", private)
	parsed, err := x509.ParseCertificate(caDER)
	if err != nil {
		t.Fatal(err)
	}
	a.Roots.AddCert(parsed)
	a.Pair = tls.Certificate{Certificate: [][]byte{leafDER}, PrivateKey: leafKey}
	return a
}

// Server returns the configuration of a server with the certificate, up to a version of TLS (0:
// any).
func (a *Authority) Server(most uint16) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{a.Pair}, MinVersion: tls.VersionTLS12, MaxVersion: most}
}

// Client returns the configuration of a client that verifies it, up to a version of TLS (0: any).
func (a *Authority) Client(most uint16) *tls.Config {
	return &tls.Config{RootCAs: a.Roots, MinVersion: tls.VersionTLS12, MaxVersion: most}
}

func template(serial int64, name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sign(t testing.TB, certificate, by *x509.Certificate, key, byKey *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, certificate, by, key.Public(), byKey)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func write(t testing.TB, path, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}
