package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// Held is the broker and the lease of a stage that a tenant runs only once.
type Held struct {
	Broker *stream.Client
	Lease  *stream.Lease
}

// Hold does the same as Broker for such a stage, and takes its lease. If another process has the
// lease, the error names that process. A refused stage has stored nothing: its start is appended
// to the operator's ledger only by Booted. The caller closes the result.
func Hold(ctx context.Context, cfg *config.Common, env *Env) (*Held, error) {
	if env.Held != nil {
		return env.Held, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("name the holder of the lease: %w", err)
	}
	holder := stream.Holder{Stage: env.Name, Host: host, PID: os.Getpid(), Version: env.Version, Since: time.Now()}
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

// Booted appends the start of the stage to the operator's ledger.
func (h *Held) Booted(ctx context.Context, env *Env) error {
	boot, err := bootOf(env)
	if err != nil {
		return err
	}
	return PatientLedger{Env: env, Broker: h.Broker}.AppendLedger(ctx, boot)
}

// Close gives the lease back and closes the connection.
func (h *Held) Close(ctx context.Context) error {
	h.Lease.Release(context.WithoutCancel(ctx))
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
