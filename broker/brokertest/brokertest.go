// Package brokertest runs the embedded broker inside a test's own process: the
// real server with the settings of package broker, ready in milliseconds.
package brokertest

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/plumbline/plumbline/broker/internal/embedded"
	"github.com/plumbline/plumbline/child"
)

// Start runs a broker until the test ends and returns its URL.
func Start(t testing.TB) (url string) {
	t.Helper()
	return New(t).URL()
}

// Server is a broker that a test can stop and restart.
type Server struct {
	t       testing.TB
	dir     string
	at      embedded.Endpoint
	secure  *tls.Config // nil: without TLS
	running *embedded.Server
}

// New runs a broker until the test ends.
func New(t testing.TB) *Server {
	t.Helper()
	return NewTLS(t, nil)
}

// NewTLS runs a broker that accepts only TLS connections, with the configuration secure.
func NewTLS(t testing.TB, secure *tls.Config) *Server {
	t.Helper()
	s := &Server{t: t, dir: t.TempDir(), secure: secure}
	var err error
	if s.at, err = embedded.Assign(s.dir, "", 0); err != nil {
		t.Fatal(err)
	}
	reserve(t, s.at.Port, s.at.MonitorPort)
	s.Start()
	t.Cleanup(s.Stop)
	return s
}

// reserve keeps the ports until the test ends: a server that a test stops gets its own back.
func reserve(t testing.TB, ports ...int) {
	t.Helper()
	for _, port := range ports {
		reservation, err := child.Reserve(port)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := reservation.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// URL returns the address for clients; it stays the same over restarts.
func (s *Server) URL() string { return s.at.URL() }

// JetStream returns the access of an operator to the broker, until the test ends.
func (s *Server) JetStream() jetstream.JetStream {
	s.t.Helper()
	conn, err := nats.Connect(s.URL())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		s.t.Fatal(err)
	}
	return js
}

// MonitorURL returns the base URL of the server's monitoring pages.
func (s *Server) MonitorURL() string { return s.at.MonitorURL() }

// Start starts a stopped server on the same address with the same data.
func (s *Server) Start() {
	s.t.Helper()
	var err error
	if s.running, err = embedded.Start(s.dir, s.at, s.secure, slog.Default()); err != nil {
		s.t.Fatal(err)
	}
}

// Stop stops the server; clients lose their connection.
func (s *Server) Stop() {
	s.t.Helper()
	if s.running == nil {
		return
	}
	if err := s.running.Stop(); err != nil {
		s.t.Error(err)
	}
	s.running = nil
}

// Restart stops and starts the server.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	s.Start()
}

// Wipe stops the server, removes its data and starts it again.
func (s *Server) Wipe() {
	s.t.Helper()
	s.Stop()
	if err := os.RemoveAll(s.dir); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		s.t.Fatal(err)
	}
	s.Start()
}

// Save copies the server's data, and returns a function that puts the copy back. The server is
// stopped meanwhile.
func (s *Server) Save() (restore func()) {
	s.t.Helper()
	s.Stop()
	saved := filepath.Join(s.t.TempDir(), "saved")
	if err := os.CopyFS(saved, os.DirFS(s.dir)); err != nil {
		s.t.Fatal(err)
	}
	s.Start()
	return func() {
		s.t.Helper()
		s.Stop()
		if err := errors.Join(os.RemoveAll(s.dir), os.CopyFS(s.dir, os.DirFS(saved))); err != nil {
			s.t.Fatal(err)
		}
		s.Start()
	}
}

// LeftBehind returns options for goleak that ignore the goroutines that the server itself
// leaves running after its stop.
func LeftBehind() []goleak.Option {
	const server = "github.com/nats-io/nats-server/v2/server"
	return []goleak.Option{
		goleak.IgnoreTopFunction(server + "/ats.Register.func1"),
		goleak.IgnoreTopFunction(server + ".(*fileStore).flushStreamStateLoop"),
		goleak.IgnoreTopFunction(server + ".(*msgBlock).flushLoop"),
	}
}
