// Package s3test runs a real S3 server, Versity's gateway over a directory, for
// tests. The module integration/s3server says which; make s3 builds it.
package s3test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/child"
	"github.com/plumbline/plumbline/pipeline/destination/s3"
)

// binary is the variable that names the server's executable.
const binary = "PLUMBLINE_S3_SERVER"

// Access key and secret of every Server.
const (
	AccessKey = "PLUMBLINETEST"
	Secret    = "a-secret-that-nothing-prints"
)

// Bucket is a bucket that every Server has.
const Bucket = "bundles"

// Server is a server that a test can kill and start again, on its address and with
// its objects.
type Server struct {
	Address string // host:port

	t       testing.TB
	path    string // of the executable
	dir     string
	running *exec.Cmd
}

// New runs a server until the test ends. Where there is none, the test is skipped.
func New(t testing.TB) *Server {
	t.Helper()
	s := Stopped(t)
	s.Start()
	return s
}

// Stopped is a server that is not started yet.
func Stopped(t testing.TB) *Server {
	t.Helper()
	path := os.Getenv(binary)
	if path == "" {
		t.Skip("there is no S3 server: make s3 builds one and sets " + binary)
	}
	s := &Server{t: t, path: path, dir: t.TempDir(), Address: freeAddress(t)}
	for _, dir := range []string{"meta", filepath.Join("objects", Bucket)} {
		if err := os.MkdirAll(filepath.Join(s.dir, dir), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(s.Kill)
	return s
}

// freeAddress is one that nobody listens on.
func freeAddress(t testing.TB) string {
	t.Helper()
	port, err := child.FreePort("127.0.0.1", 0)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// Start starts a server that does not run, and waits until it answers.
func (s *Server) Start() {
	s.t.Helper()
	s.running = exec.Command(s.path, "--port", s.Address, "--quiet",
		"posix", "--sidecar", filepath.Join(s.dir, "meta"), filepath.Join(s.dir, "objects"))
	s.running.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+AccessKey, "ROOT_SECRET_KEY="+Secret)
	s.running.Stderr = s.t.Output()
	if err := s.running.Start(); err != nil {
		s.t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	for {
		answer, err := http.Get("http://" + s.Address)
		if err == nil {
			_ = answer.Body.Close()
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the S3 server does not answer: %v", err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Kill ends the server at once, where it runs.
func (s *Server) Kill() {
	s.t.Helper()
	if s.running == nil {
		return
	}
	if err := s.running.Process.Kill(); err != nil {
		s.t.Error(err)
	}
	_ = s.running.Wait() // it was killed
	s.running = nil
}

// Config is how the server's bucket is reached.
func (s *Server) Config() s3.Config {
	s.t.Helper()
	return Config(s.t, s.Address, Secret)
}

// Config is a configuration for the bucket at an address, with this secret.
func Config(t testing.TB, address, secret string) s3.Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "credentials")
	text := "[default]\naws_access_key_id = " + AccessKey + "\naws_secret_access_key = " + secret + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := s3.Default()
	cfg.Endpoint, cfg.Bucket, cfg.CredentialsFile = "http://"+address, Bucket, file
	return cfg
}

// Objects are the contents of the bucket's objects, by name.
func (s *Server) Objects() map[string]string {
	s.t.Helper()
	root := filepath.Join(s.dir, "objects", Bucket)
	found := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil || strings.HasPrefix(name, ".") { // of the gateway's own
			return err
		}
		text, err := os.ReadFile(path)
		found[filepath.ToSlash(name)] = string(text)
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return found
}
