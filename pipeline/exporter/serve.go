package exporter

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/plumbline/plumbline/aivs/redact"
	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/durable"
	"github.com/plumbline/plumbline/pipeline/opledger"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/tables"
)

// Serve runs the stage until ctx ends and the started groups are sealed. Where another exporter
// of the tenant runs, the error names it, and the directory is not touched.
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
	if err := Continues(ctx, env, broker, cfg.keyFile()); err != nil {
		return err
	}
	if err := durable.MkdirAll(cfg.bundleDir(), 0o755); err != nil {
		return fmt.Errorf("bundle directory: %w", err)
	}
	lock, err := durable.Acquire(filepath.Join(cfg.bundleDir(), ".lock"), "exporter") // two exporters could not distinguish their files
	if err != nil {
		return fmt.Errorf("bundle directory: %w", err)
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
	e, source, err := open(ctx, cfg, env, broker)
	if err != nil {
		return err
	}
	defer source.Close()
	e.rows, e.confirm = database, held.Lease.Confirm
	if err := e.openSigner(ctx, cfg.keyFile()); err != nil {
		return err
	}
	if err := e.openCopies(ctx, broker); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.copies.close()) }()
	if err := e.openAnchors(ctx, broker); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.anchors.close()) }()
	e.signer.serve(env)
	directory := env.Component("bundle directory")
	directory.Ask(room(cfg.bundleDir()))
	directory.Up()
	keeper := opledger.Keeper{Env: env, Dir: cfg.ledgerDir(), Name: cfg.Tenant, Rotation: ledger.DefaultRotation(), Broker: opledger.On(broker), Rows: database, Confirm: held.Lease.Confirm}
	auditor := opledger.Auditor{Env: env, Broker: opledger.On(broker), Rows: database}
	env.Started()
	return service.Group(ctx,
		held.Watch,
		func(ctx context.Context) error {
			return env.ShowBacklogs(ctx, e.backlog(), keeper.Backlog(), auditor.Backlog())
		},
		func(ctx context.Context) error {
			return service.ShowSpace(ctx, env.Metrics, service.Directory{Name: "bundles", Path: cfg.bundleDir()})
		},
		e.run, e.anchors.run, e.copies.run, keeper.Run, auditor.Run)
}

// open opens the buckets, and the stream at the checkpoint.
func open(ctx context.Context, cfg *Config, env *service.Env, broker *stream.Client) (*exporter, *stream.Consumer, error) {
	times, faults := parseSchedules("seal_schedule", cfg.Schedule)
	if len(faults) > 0 {
		return nil, nil, fmt.Errorf("configuration: %s", faults[0])
	}
	rules, err := redact.ParseRules(cfg.Redact)
	if err != nil {
		return nil, nil, fmt.Errorf("configuration: redact: %w", err)
	}
	e := &exporter{
		env: env, cfg: cfg, broker: broker, metrics: newMetrics(env.Metrics), clock: newClock(time.Now),
		index: newIndex(max(leastKept, 4*cfg.RotateRows)), schedules: times, rules: rules,
	}
	var registry *cards.Registry
	var source *stream.Consumer
	err = env.Open(ctx, broker, func() (err error) {
		if e.seals, err = broker.Bucket(ctx, stream.Seals); err != nil {
			return err
		}
		if registry, err = cards.Open(ctx, broker, cfg.Cards.CacheBytes); err != nil {
			return err
		}
		state, err := broker.StreamState(ctx, stream.Receipts)
		if err != nil {
			return err
		}
		if e.saved, err = loadCheckpoint(ctx, e.seals, state.Created); err != nil {
			return err
		}
		e.created = state.Created
		source, err = broker.OpenConsumer(ctx, stream.ConsumerConfig{Stream: stream.Receipts, From: e.saved})
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	registry.Expose(env.Metrics)
	e.cards, e.source = registry, source
	e.receiptsFrom = func(ctx context.Context, from uint64) (Reader, error) {
		return broker.OpenConsumer(ctx, stream.ConsumerConfig{
			Stream: stream.Receipts, From: from, PrefetchMessages: rereadMessages, PrefetchBytes: rereadBytes})
	}
	if e.saved > 0 {
		e.index.position = e.saved - 1
	}
	e.folded.Store(e.index.position)
	return e, source, nil
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
		if removed := os.Remove(path); err == nil {
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
