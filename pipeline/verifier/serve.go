package verifier

import (
	"context"
	"errors"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/run"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// Serve runs the stage until ctx ends and the work in hand is done. Beside the
// judging it keeps the registry current, judges traces whose card or revocation
// came late, and carries cards, dead letters and the results of handshakes into
// ClickHouse.
func Serve(ctx context.Context, cfg *Config, env *run.Env) (err error) {
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
	registry, err := cards.Open(ctx, broker)
	if err != nil {
		return err
	}
	source, err := broker.OpenConsumer(ctx, stream.ConsumerConfig{Stream: stream.Traces, Durable: stream.VerifierConsumer})
	if err != nil {
		return err
	}
	defer source.Close()
	letters, err := broker.OpenConsumer(ctx, stream.ConsumerConfig{Stream: stream.DeadLetters, Durable: stream.DeadLetterConsumer})
	if err != nil {
		return err
	}
	defer letters.Close()
	results, err := broker.OpenConsumer(ctx, stream.ConsumerConfig{Stream: stream.Coherence, Durable: stream.CoherenceConsumer})
	if err != nil {
		return err
	}
	defer results.Close()

	judging, err := newBench(registry)
	if err != nil {
		return err
	}
	lateJudging, err := newBench(registry)
	if err != nil {
		return err
	}
	late := &lateCards{env: env, registry: registry, rows: database, outlet: broker, bench: lateJudging, wake: make(chan struct{}, 1)}
	v := &verifier{
		env: env, limits: cfg.limits(), source: source, rows: database, outlet: broker,
		database: env.Health.Component("database"), metrics: newMetrics(env.Metrics),
		bench: judging, newRows: database.NewTraceBatch, late: late,
	}
	lettersIn := (&deadLetters{env: env, rows: database}).carrier(letters)
	resultsIn := (&coherenceResults{env: env, rows: database, letters: broker, retainUntil: registry.RetainUntil}).carrier(results)
	known := make(chan struct{})
	return run.Group(ctx,
		func(ctx context.Context) error { return late.watch(ctx, known) },
		func(ctx context.Context) error { return late.run(ctx) },
		lettersIn.run,
		after(known, resultsIn.run), // retention goes by the cards
		after(known, v.run))         // judging before all cards are known would only ask for each
}

// after runs an actor when ready is closed.
func after(ready <-chan struct{}, actor func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-ready:
			return actor(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}

// newBench returns a bench under the published thresholds.
func newBench(registry Registry) (bench, error) {
	judge, err := aap.NewJudge(aap.DefaultThresholds())
	return bench{registry: registry, judge: judge}, err
}
