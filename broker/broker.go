// Package broker runs the embedded NATS server as a child process.
//
// It owns the child's life and where it listens. It does not speak NATS:
// package pipeline/stream does, which sees nothing but a URL, so that a server
// of the user's own can stand in the same place.
//
// Invariants: what is acknowledged is on disk (JetStream file store, synced at
// every write); a server killed with SIGKILL comes back on the same port with
// all its data; it listens on loopback unless told otherwise.
package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"

	"github.com/plumbline/plumbline/broker/internal/embedded"
	"github.com/plumbline/plumbline/child"
)

const childName = "broker"

// ErrInUse is wrapped by the error of Start for a directory that another broker
// uses.
var ErrInUse = embedded.ErrInUse

// Config says where the broker lives.
type Config struct {
	DataDir string       // of this broker alone; made when missing
	Host    string       // address to listen on; empty is 127.0.0.1
	Port    int          // 0: any free one, kept from then on
	Logger  *slog.Logger // nil is slog.Default()
}

// Broker is a supervised server. It is restarted when it dies until Stop.
type Broker struct {
	process  *child.Process
	endpoint embedded.Endpoint
}

func init() { child.Register(childName, serve) }

// serve is the body of the child; args are its directory.
func serve(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("broker: got %d arguments, want the data directory", len(args))
	}
	at, err := embedded.Load(args[0])
	if err != nil {
		return err
	}
	s, err := embedded.Start(args[0], at, embedded.Stderr())
	if err != nil {
		return err
	}
	return errors.Join(s.Watch(ctx), s.Stop()) // after ErrStuck the parent starts another child
}

// Start starts the server and returns when all its streams are recovered. ctx
// bounds the start only. child.Dispatch must have been called first in main.
func Start(ctx context.Context, cfg Config) (*Broker, error) {
	if cfg.DataDir == "" {
		return nil, errors.New("broker: DataDir must be set")
	}
	at, err := settle(cfg)
	if err != nil {
		return nil, err
	}
	process, err := child.Start(ctx, child.Config{
		Name:   childName,
		Self:   childName,
		Args:   []string{cfg.DataDir},
		Output: filepath.Join(cfg.DataDir, "broker.log"),
		Prepare: func() error {
			return errors.Join(child.PortFree(at.Host, at.Port), child.PortFree("127.0.0.1", at.MonitorPort))
		},
		Ready:        func(ctx context.Context) error { return ready(ctx, at) },
		ReadyTimeout: embedded.ReadyWithin,
		Logger:       cfg.Logger,
	})
	if err != nil {
		return nil, err
	}
	return &Broker{process: process, endpoint: at}, nil
}

// settle fixes the endpoint under the directory's lock, which the child takes
// over: whoever comes second is told so before anything is started.
func settle(cfg Config) (embedded.Endpoint, error) {
	lock, err := embedded.Acquire(cfg.DataDir)
	if err != nil {
		return embedded.Endpoint{}, err
	}
	at, err := embedded.Settle(cfg.DataDir, cfg.Host, cfg.Port)
	return at, errors.Join(err, lock.Release())
}

// ready looks for the port first, which the server opens last: it would log a
// question after its health that comes too early.
func ready(ctx context.Context, at embedded.Endpoint) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", at.Address())
	if err != nil {
		return err
	}
	return errors.Join(conn.Close(), healthy(ctx, at))
}

// healthy asks the server itself whether JetStream and its streams are there.
func healthy(ctx context.Context, at embedded.Endpoint) error {
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

// URL is the address for clients. It contains the generated password.
func (b *Broker) URL() string { return b.endpoint.URL() }

// MonitorURL is the base of the server's monitoring pages (/varz, /jsz, …), on
// loopback. Its path is a secret.
func (b *Broker) MonitorURL() string { return b.endpoint.MonitorURL() }

// Pid is the server's process, 0 while it is being restarted.
func (b *Broker) Pid() int { return b.process.Pid() }

// Fault is why the server does not run; nil while it does.
func (b *Broker) Fault() error { return b.process.State().Fault }

// Stop ends the server cleanly; it is killed when ctx ends first.
func (b *Broker) Stop(ctx context.Context) error { return b.process.Stop(ctx) }
