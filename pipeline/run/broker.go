package run

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// Broker connects a stage to the broker that its configuration names, and makes
// or checks the topology. It waits for a broker that is not there yet; a setting
// that weakens the promise ends it. The start is an event for the operator's
// ledger. The caller closes the client.
func Broker(ctx context.Context, cfg *Common, env *Env) (*stream.Client, error) {
	health := env.Health.Component("broker")
	var client *stream.Client
	boot, err := boot(env, time.Now())
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
	return client, err
}

// boot is the ledger's event that a service was started: who reads the ledger
// sees when the processes changed that made it.
func boot(env *Env, begun time.Time) (stream.LedgerEvent, error) {
	started := begun.UTC().Format(time.RFC3339Nano)
	data, err := json.Marshal(map[string]string{"service": env.Name, "started_at": started, "version": env.Version})
	return stream.LedgerEvent{Type: string(ledger.Boot), ID: env.Name + "." + started, Data: data}, err
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
