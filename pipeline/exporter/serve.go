package exporter

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/keyfile"
	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/chain"
	"github.com/plumbline/plumbline/pipeline/durable"
	"github.com/plumbline/plumbline/pipeline/run"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// Serve runs the stage until ctx ends and the group in hand is sealed.
func Serve(ctx context.Context, cfg *Config, env *run.Env) (err error) {
	key, err := signingKey(cfg.keyFile(), env)
	if err != nil {
		return fmt.Errorf("signing key: %w", err)
	}
	lock, err := lockBundles(cfg.bundleDir())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	broker, err := run.Broker(ctx, &cfg.Common, env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, broker.Close()) }()
	database, err := store.ForStage(ctx, &cfg.Common, &cfg.ClickHouse, env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	e, source, err := open(ctx, cfg, env, broker)
	if err != nil {
		return err
	}
	defer source.Close()
	e.rows, e.key, e.keyID = database, key, aivs.KeyID(key.Public().(ed25519.PublicKey))
	keeper := chain.Keeper{Env: env, Dir: cfg.ledgerDir(), Name: cfg.Tenant, Rotation: ledger.DefaultRotation(), Broker: broker, Rows: database}
	auditor := chain.Auditor{Env: env, Broker: broker, Rows: database}
	return run.Group(ctx, e.run, keeper.Run, auditor.Run)
}

// signingKey loads the key, or makes it on the first start.
func signingKey(path string, env *run.Env) (ed25519.PrivateKey, error) {
	key, err := keyfile.Load(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := durable.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if key, err = keyfile.Create(path); err == nil {
		env.Log.Info("made a signing key", "file", path, "key_id", aivs.KeyID(key.Public().(ed25519.PublicKey)))
	}
	return key, err
}

// lockBundles makes the bundle directory and takes it for this process: two
// exporters on one directory could not tell whose files they see.
func lockBundles(dir string) (*durable.Lock, error) {
	if err := durable.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("bundle directory: %w", err)
	}
	lock, err := durable.Acquire(filepath.Join(dir, ".lock"), "exporter")
	if err != nil {
		return nil, fmt.Errorf("bundle directory: %w", err)
	}
	return lock, nil
}

// open opens buckets and stream, at the checkpoint.
func open(ctx context.Context, cfg *Config, env *run.Env, broker *stream.Client) (*exporter, *stream.Consumer, error) {
	seals, err := broker.Bucket(ctx, stream.Seals)
	if err != nil {
		return nil, nil, err
	}
	registry, err := cards.Open(ctx, broker)
	if err != nil {
		return nil, nil, err
	}
	state, err := broker.StreamState(ctx, stream.Receipts)
	if err != nil {
		return nil, nil, err
	}
	from, err := loadCheckpoint(ctx, seals, state.Created)
	if err != nil {
		return nil, nil, err
	}
	source, err := broker.OpenConsumer(ctx, stream.ConsumerConfig{Stream: stream.Receipts, From: from})
	if err != nil {
		return nil, nil, err
	}
	e := &exporter{
		env: env, cfg: cfg, source: source, broker: broker, seals: seals, cards: registry,
		metrics: newMetrics(env.Metrics), created: state.Created, index: newIndex(), saved: from,
	}
	if from > 0 {
		e.index.position = from - 1
	}
	return e, source, nil
}
