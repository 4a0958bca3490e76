package exporter

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/plumbline/plumbline/aivs/redact"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/ownership"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/tables"
)

// Serve runs the stage until ctx ends and the started groups are sealed. Any number of exporters may serve
// a tenant: they share the partitions, and one of them is the keeper. If others work in other
// directories, the error names one of them, and the directories are not touched.
func Serve(ctx context.Context, cfg *Config, env *service.Env) (err error) {
	held := env.Held
	if held == nil {
		held = new(service.Held)
		if held.Broker, err = service.Connect(ctx, &cfg.Common, env); err != nil {
			return service.UnlessEnded(ctx, err)
		}
	}
	defer func() { err = errors.Join(err, held.Close(ctx)) }()
	return service.Group(ctx, held.Broker.Closed, func(ctx context.Context) error { return serveOn(ctx, cfg, env, held) })
}

func serveOn(ctx context.Context, cfg *Config, env *service.Env, held *service.Held) (err error) {
	broker := held.Broker
	place, lock, err := enter(ctx, cfg, env, broker)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if err := held.Booted(ctx, env); err != nil {
		return err
	}
	database, err := tables.Open(ctx, &cfg.Common, &cfg.ClickHouse, env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	e, owners, err := open(ctx, cfg, env, broker, place)
	if err != nil {
		return err
	}
	e.rows = database
	if err := e.openSigner(ctx, cfg.keyFile()); err != nil {
		return err
	}
	e.signer.serve(env)
	directory := env.Component("bundle directory")
	directory.Ask(room(cfg.bundleDir()))
	directory.Up()
	keeper := e.newKeeper(broker, database)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	known, ended := make(chan struct{}), make(chan struct{})
	return service.Group(ctx,
		func(ctx context.Context) error {
			return env.ShowBacklogs(ctx, e.backlog(), e.keptBacklog(keeper.ledger.Backlog()), e.keptBacklog(keeper.auditor.Backlog()))
		},
		func(ctx context.Context) error {
			return service.ShowSpace(ctx, env.Metrics, service.Directory{Name: "bundles", Path: cfg.bundleDir()})
		},
		func(ctx context.Context) error {
			return keeper.run(ctx, e, held, sync.OnceFunc(func() { close(known) }), stop, ended)
		},
		func(ctx context.Context) error {
			defer close(ended)
			select {
			case <-known: // without a keeper nothing can be sealed
				env.Started()
				return e.share(ctx, owners)
			case <-ctx.Done():
				return nil
			}
		})
}

// share joins the exporters of the tenant, and seals the sessions of the partitions that this one owns,
// until ctx ends.
func (e *exporter) share(ctx context.Context, owners ownership.Config) error {
	member, err := ownership.Join(ctx, owners)
	if err != nil {
		return service.UnlessEnded(ctx, err)
	}
	return member.Run(ctx, func(ctx context.Context, term *ownership.Term) error { return e.own(ctx, term) })
}

// open opens the buckets, and announces the process to the other exporters in place, its directories (enter).
func open(ctx context.Context, cfg *Config, env *service.Env, broker *stream.Client, place string) (*exporter, ownership.Config, error) {
	var owners ownership.Config
	times, faults := parseSchedules("seal_schedule", cfg.Schedule)
	if err := faults.Err(); err != nil {
		return nil, owners, err
	}
	rules, err := redact.ParseRules(cfg.Redact)
	if err != nil {
		return nil, owners, RedactFaults(cfg.Redact).Err()
	}
	e := &exporter{
		env: env, cfg: cfg, broker: broker, metrics: newMetrics(env.Metrics), clock: newClock(time.Now),
		keptReceipts: max(leastKept, 4*cfg.RotateRows), schedules: times, rules: rules, directory: place,
	}
	err = env.Open(ctx, broker, func() (err error) {
		if e.seals, err = broker.Bucket(ctx, stream.Seals); err != nil {
			return err
		}
		if e.cards, err = cards.Open(ctx, broker, cfg.Cards.CacheBytes); err != nil {
			return err
		}
		owners, err = ownersOn(ctx, e, broker)
		return err
	})
	if err != nil {
		return nil, owners, err
	}
	e.cards.Expose(env.Metrics)
	e.receiptsFrom = func(ctx context.Context, from uint64) (Reader, error) {
		return broker.OpenConsumer(ctx, stream.ConsumerConfig{
			Stream: stream.Receipts, From: from, PrefetchMessages: rereadMessages, PrefetchBytes: rereadBytes})
	}
	e.request = func(ctx context.Context, question []byte, within time.Duration) ([]byte, error) {
		return broker.Request(ctx, env.Name, question, within)
	}
	e.folded.Store(nothing)
	return e, owners, nil
}

// ownersOn returns how the exporters of a tenant share the partitions.
func ownersOn(ctx context.Context, e *exporter, broker *stream.Client) (ownership.Config, error) {
	leases, err := broker.Bucket(ctx, stream.Leases)
	if err != nil {
		return ownership.Config{}, err
	}
	holder, err := service.Holder(e.env)
	if err != nil {
		return ownership.Config{}, err
	}
	holder.Stage, holder.Place = stream.ExporterOwners, e.directory
	presence, err := broker.Announce(ctx, holder)
	return ownership.Config{
		Stage: stream.ExporterOwners, Stream: stream.Receipts, Silence: e.cfg.TakeoverAfter, Record: leases, Presence: presence, Broker: broker,
		Earlier: func(ctx context.Context, _ int) (stream.Progress, error) { return e.earlier(ctx, broker) },
		Open: func(ctx context.Context, from uint64) (ownership.Source, error) {
			return broker.OpenConsumer(ctx, stream.ConsumerConfig{Stream: stream.Receipts, From: from})
		},
		Retry: e.env.Retry, Log: e.env.Log, Metrics: e.env.Metrics,
	}, err
}

// earlier returns how far a version with one checkpoint was with every partition.
func (e *exporter) earlier(ctx context.Context, broker ownership.Broker) (progress stream.Progress, err error) {
	state, err := broker.StreamState(ctx, stream.Receipts)
	if err != nil {
		return progress, err
	}
	from, err := loadCheckpoint(ctx, e.seals, state.Created)
	if from > 0 {
		progress.AckFloor = from - 1
	}
	progress.Pending = state.Behind(progress.AckFloor)
	return progress, err
}

// roomBytes is how much space must be free in the bundle directory.
const roomBytes = 1 << 20

// room returns a function that returns an error unless a file can be written to the bundle
// directory. It writes one, because the free space of a file system ignores quotas and the space
// for another name. The file's name begins with a dot: it is not a bundle.
func room(dir string) func(context.Context) error {
	path, content := filepath.Join(dir, ".room"), make([]byte, roomBytes)
	return func(context.Context) error {
		err := os.WriteFile(path, content, 0o600)
		if removed := os.Remove(path); err == nil && !errors.Is(removed, fs.ErrNotExist) { // another exporter, which writes the same file, may have removed it
			err = removed
		}
		if where, ok := errors.AsType[*fs.PathError](err); ok {
			err = where.Err // readiness is public and must not show the path
		}
		if err != nil {
			return fmt.Errorf("no file of %d bytes can be written: %w", roomBytes, err)
		}
		return nil
	}
}
