// Package anchortest runs a time stamping authority for tests: the openssl program with its own
// certificate.
//
// It owns keys, certificates and openssl's configuration, in a directory that is removed with the
// test. Tests are skipped where openssl is missing.
package anchortest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Authority answers time stamp queries.
type Authority struct {
	Roots string // PEM file of the certificate that certifies the authority's

	dir string
	mu  sync.Mutex // openssl stores the serial number of its answers in a file
}

// configuration is the file that `openssl ts -reply` reads.
const configuration = `[tsa]
default_tsa = tsa1
[tsa1]
serial = %[1]s/serial
signer_cert = %[1]s/tsa.pem
signer_key = %[1]s/tsa.key
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256, sha384, sha512
accuracy = secs:1
ess_cert_id_chain = no
ess_cert_id_alg = sha256
`

// New returns an authority whose certificate is valid for a year from yesterday.
func New(t testing.TB) *Authority {
	t.Helper()
	now := time.Now()
	return NewValid(t, now.Add(-24*time.Hour), now.AddDate(1, 0, 0))
}

// NewValid returns an authority whose certificate is valid in the given period.
func NewValid(t testing.TB, from, until time.Time) *Authority {
	t.Helper()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("openssl, the time stamping authority of the test, is not installed: apt-get install openssl")
	}
	a := &Authority{dir: t.TempDir()}
	a.Roots = filepath.Join(a.dir, "ca.pem")
	if err := a.setUp(from, until); err != nil {
		t.Fatalf("make a time stamping authority: %v", err)
	}
	return a
}

func (a *Authority) setUp(from, until time.Time) error {
	rootKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	root := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test root"}, NotBefore: from, NotAfter: until,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	stamping, err := asn1.Marshal([]asn1.ObjectIdentifier{{1, 3, 6, 1, 5, 5, 7, 3, 8}})
	if err != nil {
		return err
	}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "test authority"}, NotBefore: from, NotAfter: until,
		KeyUsage:        x509.KeyUsageDigitalSignature,
		ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 37}, Critical: true, Value: stamping}}}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(
		a.certify("ca.pem", root, root, rootKey.Public(), rootKey),
		a.certify("tsa.pem", leaf, root, key.Public(), rootKey),
		a.write("tsa.key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})),
		a.write("serial", []byte("01\n")),
		a.write("tsa.conf", fmt.Appendf(nil, configuration, a.dir)),
	)
}

func (a *Authority) certify(name string, certificate, parent *x509.Certificate, public crypto.PublicKey, signer *rsa.PrivateKey) error {
	der, err := x509.CreateCertificate(rand.Reader, certificate, parent, public, signer)
	if err != nil {
		return err
	}
	return a.write(name, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func (a *Authority) write(name string, data []byte) error {
	return os.WriteFile(filepath.Join(a.dir, name), data, 0o600)
}

// Reply answers a query (DER).
func (a *Authority) Reply(query []byte) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.write("query", query); err != nil {
		return nil, err
	}
	said, err := a.openssl("-reply", "-config", filepath.Join(a.dir, "tsa.conf"), "-queryfile", filepath.Join(a.dir, "query"), "-out", filepath.Join(a.dir, "reply"))
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, said)
	}
	return os.ReadFile(filepath.Join(a.dir, "reply"))
}

// Verify runs openssl to check an answer over data.
func (a *Authority) Verify(reply, data []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := errors.Join(a.write("given", reply), a.write("data", data)); err != nil {
		return err
	}
	said, err := a.openssl("-verify", "-in", filepath.Join(a.dir, "given"), "-data", filepath.Join(a.dir, "data"), "-CAfile", a.Roots)
	if err != nil {
		return fmt.Errorf("%w: %s", err, said)
	}
	return nil
}

func (a *Authority) openssl(args ...string) ([]byte, error) {
	return exec.Command("openssl", append([]string{"ts"}, args...)...).CombinedOutput()
}

// ServeHTTP answers queries over HTTP (RFC 3161 section 3.4).
func (a *Authority) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query, err := io.ReadAll(io.LimitReader(r.Body, 64<<10))
	var reply []byte
	if err == nil {
		reply, err = a.Reply(query)
	}
	if err != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/timestamp-query" {
		http.Error(w, fmt.Sprintf("%s %s: %v", r.Method, r.Header.Get("Content-Type"), err), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/timestamp-reply")
	if _, err := w.Write(reply); err != nil {
		return // the client disconnected
	}
}
