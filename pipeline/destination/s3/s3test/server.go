// Package s3test runs a real S3 server for tests: Versity's gateway over a directory. The module
// integration/s3server pins its version; make s3 builds it.
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

// binary is the environment variable with the path of the server's executable.
const binary = "PLUMBLINE_S3_SERVER"

// Access key and secret of every Server.
const (
	accessKey = "PLUMBLINETEST"
	Secret    = "a-secret-that-nothing-prints"
)

// Bucket is the name of a bucket that every Server has.
const Bucket = "bundles"

// Server is a server that a test can kill and start again with the same address and objects.
type Server struct {
	Address string // host:port

	t       testing.TB
	path    string // of the executable
	dir     string
	running *exec.Cmd
}

// New runs a server until the test ends. It skips the test where there is no executable.
func New(t testing.TB) *Server {
	t.Helper()
	s := Stopped(t)
	s.Start()
	return s
}

// Stopped returns a server that is not started yet.
func Stopped(t testing.TB) *Server {
	t.Helper()
	path := os.Getenv(binary)
	if path == "" {
		t.Skip("there is no S3 server: make s3 builds one and sets " + binary)
	}
	port, err := child.FreePort("127.0.0.1", 0)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, path: path, dir: t.TempDir(), Address: fmt.Sprintf("127.0.0.1:%d", port)}
	for _, dir := range []string{"meta", filepath.Join("objects", Bucket)} {
		if err := os.MkdirAll(filepath.Join(s.dir, dir), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(s.Kill)
	return s
}

// Start starts a server that is not running, and waits until it answers.
func (s *Server) Start() {
	s.t.Helper()
	s.running = exec.Command(s.path, "--port", s.Address, "--quiet",
		"posix", "--sidecar", filepath.Join(s.dir, "meta"), filepath.Join(s.dir, "objects"))
	s.running.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+accessKey, "ROOT_SECRET_KEY="+Secret)
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

// Kill kills the server if it is running.
func (s *Server) Kill() {
	s.t.Helper()
	if s.running == nil {
		return
	}
	if err := s.running.Process.Kill(); err != nil {
		s.t.Error(err)
	}
	_ = s.running.Wait() // the error is that it was killed
	s.running = nil
}

// Config returns the configuration for the server's bucket.
func (s *Server) Config() s3.Config {
	s.t.Helper()
	return Config(s.t, s.Address, Secret)
}

// Config returns a configuration for the bucket at an address, with the given secret.
func Config(t testing.TB, address, secret string) s3.Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "credentials")
	text := "[default]\naws_access_key_id = " + accessKey + "\naws_secret_access_key = " + secret + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := s3.Default()
	cfg.Endpoint, cfg.Bucket, cfg.CredentialsFile = "http://"+address, Bucket, file
	return cfg
}

// Objects returns the contents of the bucket's objects by name.
func (s *Server) Objects() map[string]string {
	s.t.Helper()
	root := filepath.Join(s.dir, "objects", Bucket)
	found := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil || strings.HasPrefix(name, ".") { // the gateway's own files
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
