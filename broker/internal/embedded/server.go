// Package embedded runs a NATS server with JetStream inside this process.
//
// It owns the server's settings, its endpoint (ports and password, kept over
// restarts) and the lock on its directory. It owns neither the process nor the
// clients.
//
// Invariants: every write is synced before it is acknowledged; a directory has
// at most one server; every client needs the generated password.
package embedded

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"golang.org/x/crypto/bcrypt"

	"github.com/plumbline/plumbline/pipeline/durable"
)

const (
	// maxPayload leaves room above the largest trace, card and receipt.
	maxPayload = 8 << 20
	// maxPending is how many bytes may wait for a client before the server closes its connection. Our
	// own services let less be on its way (docs/NATS.md); the rest is room for other programs.
	maxPending = 256 << 20
	// writeDeadline is how long a client may read nothing before the server closes its connection. On a
	// machine with too few cores, a process may not run for longer than the server's default of 10 s.
	writeDeadline = 30 * time.Second
	// ReadyWithin bounds the recovery of the streams at start.
	ReadyWithin = 5 * time.Minute
	// readyStep is the interval at which a start checks whether the server has failed.
	readyStep = 100 * time.Millisecond
)

// Server is a running server that holds the lock on its directory.
type Server struct {
	nats    *server.Server
	options *server.Options
	dir     string
	log     *slog.Logger
	lock    *durable.Lock
	failed  atomic.Bool // the store could not write
}

// Start runs a server on the endpoint, with its store in dir. It returns when
// the server accepts connections and every stream is recovered. With the configuration
// secure, the server accepts only TLS connections; nil is a server without TLS.
func Start(dir string, at Endpoint, secure *tls.Config, log *slog.Logger) (*Server, error) {
	lock, err := Acquire(dir)
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, log: log, lock: lock}
	err = mendStreams(dir, log)
	if err == nil {
		err = s.start(at, secure)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the broker in %s: %w", dir, err), lock.Release())
	}
	return s, nil
}

func (s *Server) start(at Endpoint, secure *tls.Config) (err error) {
	if s.options, err = options(s.dir, at); err != nil {
		return err
	}
	s.options.TLS, s.options.TLSConfig = secure != nil, secure
	if s.nats, err = server.NewServer(s.options); err != nil {
		return err
	}
	var fatal atomic.Pointer[error]
	s.nats.SetLogger(logger{log: s.log, fatal: &fatal, failed: &s.failed}, false, false)
	s.nats.Start()
	for begun := time.Now(); !s.nats.ReadyForConnections(readyStep); {
		cause := fatal.Load()
		if cause != nil || !s.nats.Running() || time.Since(begun) > ReadyWithin {
			s.nats.Shutdown()
			err := errors.New("it does not accept connections")
			if cause != nil {
				err = errors.Join(err, *cause)
			}
			return err
		}
	}
	return nil
}

func options(dir string, at Endpoint) (*server.Options, error) {
	// The password is random, so a cheap hash is as safe as an expensive one.
	hash, err := bcrypt.GenerateFromPassword([]byte(at.Password), bcrypt.MinCost)
	if err != nil {
		return nil, fmt.Errorf("hash the password: %w", err)
	}
	held, err := heldIn(dir)
	if err != nil {
		return nil, err
	}
	limit, err := limitOf(dir, held)
	if err != nil {
		return nil, err
	}
	return &server.Options{
		ServerName:        "plumbline",
		Host:              at.Host,
		Port:              at.Port,
		Username:          at.User,
		Password:          string(hash),
		HTTPHost:          loopback,
		HTTPPort:          at.MonitorPort,
		HTTPBasePath:      "/" + at.MonitorToken,
		JetStream:         true,
		StoreDir:          dir,
		JetStreamMaxStore: max(limit, 1), // 0 would be no limit
		SyncAlways:        true,
		MaxPayload:        maxPayload,
		MaxPending:        maxPending,
		WriteDeadline:     writeDeadline,
		NoSigs:            true,
	}, nil
}

// Stop ends the server cleanly and releases the directory.
func (s *Server) Stop() error {
	s.nats.Shutdown()
	s.nats.WaitForShutdown()
	return s.lock.Release()
}

// logger forwards warnings and errors; it is silent in normal operation.
type logger struct {
	log    *slog.Logger
	fatal  *atomic.Pointer[error] // set to the first error that the server logs as fatal; it continues after it
	failed *atomic.Bool           // set when a store could not write
}

func (logger) Noticef(string, ...any) {}
func (logger) Debugf(string, ...any)  {}
func (logger) Tracef(string, ...any)  {}

func (l logger) Warnf(format string, args ...any) {
	l.log.Warn("the broker warns", "text", fmt.Sprintf(format, args...))
}

// writeError is the text that the server logs when a store could not write. There is no other
// signal.
const writeError = "Critical write error"

func (l logger) Errorf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if strings.Contains(text, writeError) {
		l.failed.Store(true)
	}
	l.log.Error("the broker reports an error", "text", text)
}

func (l logger) Fatalf(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	l.log.Error("broker failed", "error", err)
	l.fatal.CompareAndSwap(nil, &err) // the first error is the cause
}

// lockPatience is how long a directory may stay locked by a server that is
// shutting down, such as the child of a parent that was just killed.
const lockPatience = 5 * time.Second

// Acquire locks the directory, and creates it if it is missing. The error wraps
// durable.ErrLocked if another server uses the directory.
func Acquire(dir string) (*durable.Lock, error) {
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the broker's directory: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockPatience)
	defer cancel()
	lock, err := durable.Await(ctx, filepath.Join(dir, "lock"), "broker")
	if err != nil {
		return nil, fmt.Errorf("the broker's directory: %w", err)
	}
	return lock, nil
}
