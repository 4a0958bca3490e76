package transport

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/plumbline/plumbline/pipeline/transport/transporttest"
)

// A server with a certificate that one of the file signed is trusted under its own names only.
func TestTrustInAnAuthority(t *testing.T) {
	authority := transporttest.New(t)
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = authority.Server(0)
	server.StartTLS()
	defer server.Close()
	for name, want := range map[string]bool{"localhost": true, "other.example": false} {
		config, err := Trust(authority.CAFile)
		if err != nil {
			t.Fatal(err)
		}
		config.ServerName = name
		over := &http.Transport{TLSClientConfig: config}
		answer, err := (&http.Client{Transport: over}).Get(server.URL)
		if (err == nil) != want {
			t.Errorf("%s: error %v, want an answer: %t", name, err, want)
		}
		if err == nil {
			_ = answer.Body.Close()
		}
		over.CloseIdleConnections()
	}
}

// A client that trusts a file reaches the servers with a certificate of it, and no others.
func TestTrust(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler()) // its certificate is its own authority
	defer server.Close()
	dir := t.TempDir()
	own, foreign := filepath.Join(dir, "own.pem"), transporttest.New(t).CAFile
	if err := os.WriteFile(own, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]bool{own: true, foreign: false} {
		config, err := Trust(file)
		if err != nil {
			t.Fatal(err)
		}
		over := &http.Transport{TLSClientConfig: config}
		answer, err := (&http.Client{Transport: over}).Get(server.URL)
		if (err == nil) != want {
			t.Errorf("%s: error %v, want an answer: %t", filepath.Base(file), err, want)
		}
		if err == nil {
			_ = answer.Body.Close()
		}
		over.CloseIdleConnections()
	}
	empty := filepath.Join(dir, "empty.pem")
	if err := os.WriteFile(empty, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{empty, filepath.Join(dir, "missing.pem")} {
		if _, err := Trust(file); err == nil {
			t.Errorf("%s: no error", file)
		}
	}
	if config, err := Trust(""); config != nil || err != nil {
		t.Errorf("without a file: %v, %v", config, err)
	}
}
