package drift

import (
	"context"
	"errors"
	"time"

	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/ownership"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/tables"
)

// Serve runs the stage until ctx ends and all applied traces are stored. Any number of processes may
// serve a tenant: they share the partitions. It also keeps the registry of cards current.
func Serve(ctx context.Context, cfg *Config, env *service.Env) (err error) {
	broker, err := service.Broker(ctx, &cfg.Common, env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, broker.Close()) }()
	return service.Group(ctx, broker.Closed, func(ctx context.Context) error { return serveOn(ctx, cfg, env, broker) })
}

func serveOn(ctx context.Context, cfg *Config, env *service.Env, broker *stream.Client) (err error) {
	pins, err := cfg.pins()
	if err != nil {
		return err
	}
	database, err := tables.Open(ctx, &cfg.Common, &cfg.ClickHouse, env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	var registry *cards.Registry
	var bucket stream.State // of cards
	var owners ownership.Config
	err = env.Open(ctx, broker, func() (err error) {
		if registry, err = cards.Open(ctx, broker, cfg.Cards.CacheBytes); err != nil {
			return err
		}
		if bucket, err = broker.StreamState(ctx, stream.CardRecords); err != nil {
			return err
		}
		owners, err = ownersOn(ctx, cfg, env, broker)
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
	backlog := service.Consumer{Name: "drift", Backlog: broker.DriftBacklog}
	known := make(chan struct{})
	return service.Group(ctx,
		func(ctx context.Context) error {
			return registry.Follow(ctx, env.Retry, env.Log, "its traces are measured without it", cards.Observer{Ready: func() { close(known) }})
		},
		func(ctx context.Context) error { return env.ShowBacklogs(ctx, backlog) },
		func(ctx context.Context) error {
			select {
			case <-known: // a card that existed at the start counts for the retention
				env.Started()
				return s.share(ctx, owners)
			case <-ctx.Done():
				return nil
			}
		})
}

// ownersOn returns how the drift processes of a tenant share the partitions.
func ownersOn(ctx context.Context, cfg *Config, env *service.Env, broker *stream.Client) (ownership.Config, error) {
	leases, err := broker.Bucket(ctx, stream.Leases)
	if err != nil {
		return ownership.Config{}, err
	}
	holder, err := service.Holder(env)
	if err != nil {
		return ownership.Config{}, err
	}
	holder.Stage = stream.DriftOwners
	presence, err := broker.Announce(ctx, holder)
	return ownership.Config{
		Stage: stream.DriftOwners, Stream: stream.Traces, Silence: cfg.TakeoverAfter, Record: leases, Presence: presence, Broker: broker,
		Earlier: func(ctx context.Context, partition int) (stream.Progress, error) {
			return broker.ConsumerProgress(ctx, stream.Traces, stream.DriftConsumer(partition))
		},
		Open: func(ctx context.Context, from uint64) (ownership.Source, error) {
			return broker.OpenConsumer(ctx, stream.ConsumerConfig{
				Stream: stream.Traces, From: from, PrefetchMessages: prefetchMessages, PrefetchBytes: prefetchBytes,
			})
		},
		Retry: env.Retry, Log: env.Log, Metrics: env.Metrics,
	}, err
}

// share joins the drift processes of the tenant, and measures the traces of the partitions that this one
// owns, until ctx ends.
func (s *stage) share(ctx context.Context, owners ownership.Config) error {
	member, err := ownership.Join(ctx, owners)
	if err != nil {
		return service.UnlessEnded(ctx, err)
	}
	return member.Run(ctx, func(ctx context.Context, term *ownership.Term) error {
		s.source = term
		return service.Group(ctx, s.run, func(ctx context.Context) error { return s.watchStuck(ctx, owners.Broker) })
	})
}

func newStage(cfg *Config, env *service.Env, broker *stream.Client, database *store.Store, registry *cards.Registry, pins Pins) *stage {
	s := &stage{
		cfg: cfg, env: env, rows: database, outlet: broker,
		registry: registry, pins: pins,
		metrics: newMetrics(env.Metrics), now: time.Now,
	}
	s.build()
	s.show(env.Metrics)
	return s
}
