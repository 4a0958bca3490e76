package run

import (
	"context"
	"errors"
	"time"

	"github.com/plumbline/plumbline/pipeline/events"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// Broker connects a stage to the broker that its configuration names, and makes
// or checks the topology. It waits for a broker that is not there yet; a setting
// that weakens the promise ends it. The start is an event for the operator's
// ledger. The caller closes the client.
func Broker(ctx context.Context, cfg *Common, env *Env) (*stream.Client, error) {
	health := env.Component("broker")
	var client *stream.Client
	boot, err := events.Boot{Service: env.Name, StartedAt: time.Now(), Version: env.Version}.Event()
	if err != nil {
		return nil, err
	}
	err = env.Retry.Do(ctx, "connect to the broker", func() (err error) {
		client, err = connect(ctx, cfg.Broker(env.Name, env.Log), boot)
		health.Report(err)
		if err != nil && !errors.Is(err, stream.ErrUnavailable) {
			err = Permanent(err)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	health.Ask(client.Ping)
	return client, nil
}

// PatientLedger appends to the operator's ledger as soon as the broker lets it
// (stream.Client).
type PatientLedger struct {
	Env    *Env
	Broker interface {
		AppendLedger(ctx context.Context, events ...stream.LedgerEvent) error
	}
}

// AppendLedger returns when the events are stored, or ctx has ended.
func (l PatientLedger) AppendLedger(ctx context.Context, events ...stream.LedgerEvent) error {
	return l.Env.Retry.Do(ctx, "append to the ledger", func() error { return l.Broker.AppendLedger(ctx, events...) })
}

// connect leaves nothing open when it fails.
func connect(ctx context.Context, cfg stream.Config, boot stream.LedgerEvent) (*stream.Client, error) {
	client, err := stream.Connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := client.EnsureTopology(ctx); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	if err := client.AppendLedger(ctx, boot); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return client, nil
}
