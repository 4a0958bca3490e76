package ingest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/obs"
	"github.com/plumbline/plumbline/pipeline/run"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// Serve runs the stage until ctx ends and the requests in hand are answered. An
// unusable token file, certificate or address ends it at once; a broker that is
// away does not.
func Serve(ctx context.Context, cfg *Config, env *run.Env) error {
	keeper, err := auth.Open(cfg.TokenFile, cfg.Listen, env.Log)
	if err != nil {
		return fmt.Errorf("%w: %w", run.ErrUsage, err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", cfg.Listen)
	if err != nil {
		return fmt.Errorf("listen for publishers: %w", err)
	}
	return serveOn(ctx, listener, keeper, cfg, env)
}

// serveOn is Serve on a listener, which it closes.
func serveOn(ctx context.Context, listener net.Listener, keeper *auth.Keeper, cfg *Config, env *run.Env) error {
	work, stop := env.Drain(ctx)
	defer stop()
	d, err := newDoor(work, cfg, env)
	if err != nil {
		return errors.Join(fmt.Errorf("%w: %w", run.ErrUsage, err), listener.Close())
	}
	closed := make(chan struct{})
	return run.Group(ctx,
		func(ctx context.Context) error {
			defer close(closed)
			return d.serve(ctx, work, listener)
		},
		func(ctx context.Context) error {
			s := &server{
				env: env, maxBody: cfg.MaxBodyBytes, memory: semaphore.NewWeighted(cfg.MaxInFlightBytes), keeper: keeper,
				metrics: newMetrics(env.Metrics), broker: env.Health.Component("broker"),
				stopping: func() bool { return ctx.Err() != nil },
			}
			return s.attend(ctx, work, cfg, d, closed)
		})
}

// attend connects to the broker, opens the door, and stays until it is closed:
// nobody then waits for the committer any more.
func (s *server) attend(ctx, work context.Context, cfg *Config, d *door, closed <-chan struct{}) (err error) {
	broker, err := run.Broker(ctx, &cfg.Common, s.env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, broker.Close()) }()
	bucket, err := broker.Bucket(ctx, stream.Cards)
	if err != nil {
		return err
	}
	committer := broker.NewCommitter(stream.CommitConfig{})
	defer committer.Close()
	s.traces, s.cards, s.sessions = committer, cards.New(bucket), broker
	s.letters = newLetters(s.env, broker, s.metrics)
	d.open(s.routes())
	return run.Group(work,
		func(work context.Context) error { return s.letters.run(work, closed) },
		func(work context.Context) error { return watchBroker(work, broker, s.broker, closed) })
}

// pingEvery is how soon readiness tells of a broker that nobody publishes to.
const pingEvery = 5 * time.Second

// watchBroker reports whether the broker answers, until closed.
func watchBroker(ctx context.Context, broker *stream.Client, health *obs.Component, closed <-chan struct{}) error {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		select {
		case <-closed:
			return nil
		case <-tick.C:
			health.Report(broker.Ping(ctx))
		}
	}
}
