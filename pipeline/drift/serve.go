package drift

import (
	"context"
	"errors"
	"time"

	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/tables"
)

// Serve runs the stage until ctx ends and all applied traces are stored. It also keeps the
// registry of cards current. Where another drift stage of the tenant runs, the error names it.
func Serve(ctx context.Context, cfg *Config, env *service.Env) (err error) {
	held, err := service.Hold(ctx, &cfg.Common, env, cfg.Standby)
	if err != nil {
		return service.UnlessEnded(ctx, err)
	}
	defer func() { err = errors.Join(err, held.Close(ctx)) }()
	return service.Group(ctx, held.Broker.Closed, func(ctx context.Context) error { return serveOn(ctx, cfg, env, held) })
}

func serveOn(ctx context.Context, cfg *Config, env *service.Env, held *service.Held) (err error) {
	broker := held.Broker
	pins, err := cfg.pins()
	if err != nil {
		return err
	}
	if err := held.Booted(ctx, env); err != nil {
		return err
	}
	database, err := tables.Open(ctx, &cfg.Common, &cfg.ClickHouse, env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	var registry *cards.Registry
	var bucket stream.State // of cards
	err = env.Open(ctx, broker, func() (err error) {
		if registry, err = cards.Open(ctx, broker, cfg.Cards.CacheBytes); err == nil {
			bucket, err = broker.StreamState(ctx, stream.CardRecords)
		}
		return err
	})
	if err != nil {
		return err
	}
	registry.Expose(env.Metrics)
	rely := func() error { return registry.Rely(ctx, database, bucket) }
	if err := env.Retry.Do(ctx, "read the position of table cards", rely); err != nil {
		return service.UnlessEnded(ctx, err)
	}
	record := func() error { return database.InsertDriftBaselines(ctx, pins.rows()) }
	if err := env.Retry.Do(ctx, "insert pinned baselines", record); err != nil {
		return service.UnlessEnded(ctx, err)
	}
	s := newStage(cfg, env, broker, database, registry, pins)
	s.confirm = held.Lease.Confirm
	var consumers []string
	for partition := range subject.Partitions {
		consumers = append(consumers, stream.DriftConsumer(partition))
	}
	backlog := service.Consumer{Name: "drift", Backlog: func(ctx context.Context) (uint64, error) {
		return broker.Backlog(ctx, stream.Traces, consumers...)
	}}
	known := make(chan struct{})
	return service.Group(ctx,
		held.Watch,
		func(ctx context.Context) error {
			return registry.Follow(ctx, env.Retry, env.Log, "its traces are measured without it", cards.Observer{Ready: func() { close(known) }})
		},
		func(ctx context.Context) error { return env.ShowBacklogs(ctx, backlog) },
		func(ctx context.Context) error {
			select {
			case <-known: // a card that existed at the start counts for the retention
				env.Started()
				return service.Group(ctx, s.run, func(ctx context.Context) error { return s.watchStuck(ctx, broker) })
			case <-ctx.Done():
				return nil
			}
		})
}

func newStage(cfg *Config, env *service.Env, broker *stream.Client, database *store.Store, registry *cards.Registry, pins Pins) *stage {
	s := &stage{
		cfg: cfg, env: env, rows: database, outlet: broker, positions: broker,
		registry: registry, pins: pins,
		metrics: newMetrics(env.Metrics), now: time.Now,
		open: func(ctx context.Context, from uint64) (Source, error) {
			return broker.OpenConsumer(ctx, stream.ConsumerConfig{
				Stream:           stream.Traces,
				From:             from,
				PrefetchMessages: prefetchMessages,
				PrefetchBytes:    prefetchBytes,
			})
		},
	}
	s.build()
	s.show(env.Metrics)
	return s
}
