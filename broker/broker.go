// Package broker runs the embedded NATS server as a child process.
//
// It owns the child's life and its listen addresses. It does not speak NATS:
// package pipeline/stream does, which knows only a URL, so an external server
// can be used instead.
//
// Invariants: acknowledged messages are on disk (JetStream file store, synced at
// every write); a server killed with SIGKILL restarts on the same port with
// all its data; it listens on loopback unless configured otherwise.
package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"github.com/plumbline/plumbline/broker/internal/embedded"
	"github.com/plumbline/plumbline/child"
	"github.com/plumbline/plumbline/pipeline/durable"
)

const childName = "broker"

// ErrInUse is wrapped by the error of Start if another broker uses the directory.
var ErrInUse = durable.ErrLocked

// Config configures the broker.
type Config struct {
	DataDir string       // used by this broker alone; created when missing
	Host    string       // address to listen on; empty is 127.0.0.1
	Port    int          // 0: any free port, which is then kept
	Logger  *slog.Logger // nil is slog.Default()
}

// Broker is a supervised server. It is restarted when it dies, until Stop.
type Broker struct {
	process  *child.Process
	endpoint embedded.Endpoint
}

func init() { child.Register(childName, serve) }

// serve is the body of the child; its argument is the data directory.
func serve(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("broker: got %d arguments, want the data directory", len(args))
	}
	at, err := embedded.Load(args[0])
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil)) // the parent keeps it in a file
	s, err := embedded.Start(args[0], at, nil, log)
	if err != nil {
		return err
	}
	return errors.Join(s.Watch(ctx), s.Stop()) // after ErrStuck the parent starts another child
}

// Start starts the server and returns when all its streams are recovered. ctx
// bounds the start only. main must have called child.Dispatch first.
func Start(ctx context.Context, cfg Config) (*Broker, error) {
	if cfg.DataDir == "" {
		return nil, errors.New("broker: DataDir must be set")
	}
	// Fix the endpoint under the directory's lock, and release the lock, which the child then
	// takes. A second broker on the directory fails here, before anything is started.
	lock, err := embedded.Acquire(cfg.DataDir)
	if err != nil {
		return nil, err
	}
	last, _ := embedded.Load(cfg.DataDir) // Assign reports its error
	at, err := embedded.Assign(cfg.DataDir, cfg.Host, cfg.Port)
	if err = errors.Join(err, lock.Release()); err != nil {
		return nil, err
	}
	if last.Port != 0 && last.Port != at.Port {
		cmp.Or(cfg.Logger, slog.Default()).Warn("the broker's port has changed: programs that have the old one need the new one", "old", last.Port, "new", at.Port)
	}
	process, err := child.Start(ctx, child.Config{
		Name:         childName,
		Self:         childName,
		Args:         []string{cfg.DataDir},
		Output:       filepath.Join(cfg.DataDir, "broker.log"),
		Listens:      at.Listens(),
		Ready:        func(ctx context.Context) error { return ready(ctx, at) },
		ReadyTimeout: embedded.ReadyWithin,
		Logger:       cfg.Logger,
	})
	if err != nil {
		return nil, err
	}
	return &Broker{process: process, endpoint: at}, nil
}

// ready asks the server whether JetStream and its streams are ready. It checks the port first,
// which the server opens last: the server would log a health request that comes too early.
func ready(ctx context.Context, at embedded.Endpoint) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", at.Address())
	if err != nil {
		return err
	}
	if err := conn.Close(); err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.MonitorURL()+"/healthz", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("the broker's health is %s", answer.Status)
	}
	return errors.Join(err, answer.Body.Close())
}

// URL returns the address for clients. It contains the generated password.
func (b *Broker) URL() string { return b.endpoint.URL() }

// MonitorURL returns the base URL of the server's monitoring pages (/varz, /jsz, …), on
// loopback. Its path is a secret.
func (b *Broker) MonitorURL() string { return b.endpoint.MonitorURL() }

// Pid returns the process id of the server, 0 while it is being restarted.
func (b *Broker) Pid() int { return b.process.Pid() }

// Fault returns why the server does not run; nil while it runs.
func (b *Broker) Fault() error { return b.process.State().Fault }

// Stop ends the server cleanly. If ctx ends first, the server is killed.
func (b *Broker) Stop(ctx context.Context) error { return b.process.Stop(ctx) }
