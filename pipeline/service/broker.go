package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/events"
	"github.com/plumbline/plumbline/pipeline/obs"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// Broker connects a stage to the configured broker, and creates or checks the topology. It waits
// for a broker that is not running yet. A setting below the durability requirement ends it. It
// appends the start of the stage to the operator's ledger. The caller closes the client.
func Broker(ctx context.Context, cfg *config.Common, env *Env) (*stream.Client, error) {
	boot, err := bootOf(env)
	if err != nil {
		return nil, err
	}
	return connected(ctx, cfg, env, func(client *stream.Client) error { return client.AppendLedger(ctx, boot) })
}

func bootOf(env *Env) (ledger.Event, error) {
	return events.Boot{Service: env.Name, StartedAt: time.Now(), Version: env.Version}.Event()
}

// connected returns a client whose topology exists, once begin has succeeded with it.
func connected(ctx context.Context, cfg *config.Common, env *Env, begin func(*stream.Client) error) (*stream.Client, error) {
	err := errors.Join(env.ShowCertificate("nats_ca_file", cfg.NATS.CAFile), env.ShowCertificate("nats_cert_file", cfg.NATS.CertFile))
	if err != nil {
		return nil, err
	}
	health := env.Component("broker")
	var client *stream.Client
	err = env.Retry.Do(ctx, "connect to the broker", func() (err error) {
		client, err = connect(ctx, StreamConfig(cfg, env.Name, env.Log), begin)
		health.Report(err)
		return unlessUnavailable(err)
	})
	if err != nil {
		return nil, err
	}
	health.Ask(client.Ping)
	return client, nil
}

// Open repeats open, which opens streams and buckets, while the broker is unavailable. Before
// each repetition it creates missing streams and buckets. Until open succeeds, readiness shows
// what the start waits for. Any other error ends the start, also a missing right on the broker.
// What must happen only once, such as registering metrics, must come after Open.
func (e *Env) Open(ctx context.Context, broker *stream.Client, open func() error) error {
	health := e.Component("broker")
	health.Down("streams and buckets are being opened")
	defer health.Up() // a start that fails needs no readiness
	again := false
	return e.Retry.Do(ctx, "open streams and buckets", func() (err error) {
		if again {
			err = broker.EnsureTopology(ctx)
		}
		if again = true; err == nil {
			err = open()
		}
		if err != nil {
			health.Down(err.Error())
		}
		return unlessUnavailable(err)
	})
}

// unlessUnavailable makes an error permanent, unless the broker is unreachable, too slow or full.
// Any other error at the start of a stage remains until someone repairs the cause.
func unlessUnavailable(err error) error {
	if errors.Is(err, stream.ErrUnavailable) && !errors.Is(err, stream.ErrRefused) {
		return err
	}
	return Permanent(err)
}

// How often the broker stores a trial message: often enough that readiness reports a full disk
// within ten seconds, even if the broker then answers no trial.
const (
	trialEvery = 4 * time.Second
	trialAgain = 500 * time.Millisecond // after a failed trial
)

// tried is a broker that stores trial messages (stream.Client).
type tried interface {
	Ping(ctx context.Context) error
	Trial(ctx context.Context) error
}

// TryBroker makes the broker store a message at intervals until ctx ends. It reports a broker
// that answers but stores nothing because its disk or its limit is full. Use it in a stage that
// repeats nothing by itself.
func TryBroker(ctx context.Context, env *Env, broker tried) error {
	health := env.Component("broker")
	var since time.Time // of the first failure in a row
	for failures, wait := 0, time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		began := time.Now()
		err := tryBroker(ctx, broker)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			health.Up()
			failures, wait = 0, trialEvery
			continue
		case failures == 0:
			since = began
		}
		failures, wait = failures+1, trialAgain
		if failures >= shownFailures && time.Since(since) >= shownAfter {
			health.Down(err.Error())
		}
	}
}

func tryBroker(ctx context.Context, broker tried) error {
	ctx, cancel := context.WithTimeout(ctx, obs.AnswerWithin)
	defer cancel()
	if broker.Ping(ctx) != nil {
		return nil // readiness has reported it
	}
	switch err := broker.Trial(ctx); {
	case errors.Is(err, stream.ErrRefused):
		return err
	case err != nil:
		return fmt.Errorf("it answers but stores nothing: its disk may be full, or its limit reached: %s", causes(err))
	}
	return nil
}

// PatientLedger appends to the operator's ledger and repeats that while the broker is unavailable
// (stream.Client).
type PatientLedger struct {
	Env    *Env
	Broker interface {
		AppendLedger(ctx context.Context, events ...ledger.Event) error
	}
}

// AppendLedger returns when the events are stored, or when ctx has ended.
func (l PatientLedger) AppendLedger(ctx context.Context, events ...ledger.Event) error {
	return l.Env.Retry.Do(ctx, "append to the ledger", func() error { return l.Broker.AppendLedger(ctx, events...) })
}

// connect connects and calls begin. It closes the connection if that fails.
func connect(ctx context.Context, cfg stream.Config, begin func(*stream.Client) error) (*stream.Client, error) {
	client, err := stream.Connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err = client.EnsureTopology(ctx); err == nil {
		err = begin(client)
	}
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return client, nil
}

// StreamConfig returns the configuration of a service's connection to the broker.
func StreamConfig(c *config.Common, service string, log *slog.Logger) stream.Config {
	return stream.Config{
		URL:             c.NATS.URL,
		Name:            service,
		CredentialsFile: c.NATS.CredentialsFile,
		NKeySeedFile:    c.NATS.NKeySeedFile,
		User:            c.NATS.User,
		Password:        c.NATS.Password,
		Token:           c.NATS.Token,
		InboxPrefix:     c.NATS.InboxPrefix,
		CAFile:          c.NATS.CAFile,
		CertFile:        c.NATS.CertFile,
		KeyFile:         c.NATS.KeyFile,
		Tenant:          c.Tenant,
		Replicas:        c.NATS.Replicas,
		MonitorURL:      c.NATS.MonitorURL,
		AllowUnsafe:     c.NATS.AllowUnsafe,
		Logger:          log,
	}
}

// Connect is Broker without the start in the operator's ledger: a process that is refused after this
// has stored nothing.
func Connect(ctx context.Context, cfg *config.Common, env *Env) (*stream.Client, error) {
	return connected(ctx, cfg, env, func(*stream.Client) error { return nil })
}

// Held is the broker, and the lease of what one process of a tenant does.
type Held struct {
	Broker *stream.Client
	Lease  *stream.Lease // nil: another process has it, or it was not asked for
}

// Holder names this process to the others of its stage.
func Holder(env *Env) (stream.Holder, error) {
	host, err := os.Hostname()
	if err != nil {
		return stream.Holder{}, fmt.Errorf("name the holder of the lease: %w", err)
	}
	return stream.Holder{Stage: env.Name, Host: host, PID: os.Getpid(), Version: env.Version, Since: time.Now()}, nil
}

// Hold connects to the broker and takes the lease of a stage. If another process has the lease, the
// error names that process. A process without the lease has stored nothing: its start is appended to the
// operator's ledger only by Booted. The caller closes the result.
func Hold(ctx context.Context, cfg *config.Common, env *Env) (*Held, error) {
	holder, err := Holder(env)
	if err != nil {
		return nil, err
	}
	held := new(Held)
	held.Broker, err = connected(ctx, cfg, env, func(client *stream.Client) (err error) {
		held.Lease, err = client.Acquire(ctx, holder)
		return err
	})
	if err != nil {
		return nil, err
	}
	return held, nil
}

// leaseAsks is how often a process asks whether the lease is free.
const leaseAsks = time.Second

// Await takes the lease when no other process has it, unless this one has it. It calls taken each time
// that it finds another process with the lease. When ctx ends it returns ctx's error.
func (h *Held) Await(ctx context.Context, env *Env, taken func()) error {
	if h.Lease != nil {
		return nil
	}
	holder, err := Holder(env)
	if err != nil {
		return err
	}
	for waits := false; ; waits = true {
		err := env.Retry.Do(ctx, "take the lease", func() (err error) {
			h.Lease, err = h.Broker.Acquire(ctx, holder)
			return unlessUnavailable(err)
		})
		if !errors.Is(err, stream.ErrLeaseHeld) && !errors.Is(err, stream.ErrLeaseSilent) {
			return err
		}
		if !waits {
			env.Log.Info("another process has the lease; this one takes it when that one has ended", "reason", err)
		}
		taken()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(leaseAsks):
		}
	}
}

// Booted appends the start of the stage to the operator's ledger.
func (h *Held) Booted(ctx context.Context, env *Env) error {
	boot, err := bootOf(env)
	if err != nil {
		return err
	}
	return PatientLedger{Env: env, Broker: h.Broker}.AppendLedger(ctx, boot)
}

// Close gives the lease back, if this process has it, and closes the connection.
func (h *Held) Close(ctx context.Context) error {
	if h.Lease != nil {
		h.Lease.Release(context.WithoutCancel(ctx))
	}
	return h.Broker.Close()
}

// confirmEvery is how often a stage that writes nothing confirms its lease.
const confirmEvery = time.Second

// Watch returns an error soon after the lease was lost, and nil when ctx ends. It ignores a
// broker that does not answer: other code reports that, and the stage confirms the lease before
// it writes.
func (h *Held) Watch(ctx context.Context) error {
	tick := time.NewTicker(confirmEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := h.Lease.Confirm(ctx); errors.Is(err, stream.ErrLeaseLost) {
			return err
		}
	}
}
