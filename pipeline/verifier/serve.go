package verifier

import (
	"context"
	"errors"
	"fmt"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/messages"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/sink"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/tables"
)

// Serve runs the stage until ctx ends and the last batch is committed. It also follows the
// registry of cards, judges traces whose card or revocation came late, and hosts the sinks
// (pipeline/sink).
func Serve(ctx context.Context, cfg *Config, env *service.Env) (err error) {
	policies, err := messages.OpenPolicies(cfg.MessagePoliciesFile, false, env.Log)
	if err != nil {
		return fmt.Errorf("%w: %w", config.ErrUsage, err)
	}
	broker, err := service.Broker(ctx, &cfg.Common, env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, broker.Close()) }()
	return service.Group(ctx, broker.Closed, func(ctx context.Context) error { return serveOn(ctx, cfg, env, broker, policies) })
}

func serveOn(ctx context.Context, cfg *Config, env *service.Env, broker *stream.Client, policies *messages.Policies) (err error) {
	database, err := tables.Open(ctx, &cfg.Common, &cfg.ClickHouse, env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	var registry *cards.Registry
	var auditor Messages
	sources := &sources{broker: broker}
	defer sources.close()
	err = env.Open(ctx, broker, func() (err error) {
		if registry, err = cards.Open(ctx, broker, cfg.Cards.CacheBytes); err != nil {
			return err
		}
		if auditor, err = newAuditor(ctx, broker, policies); err != nil {
			return err
		}
		return sources.open(ctx)
	})
	if err != nil {
		return err
	}
	registry.Expose(env.Metrics)

	judging, err := newWorkspace(registry, auditor, &cfg.Rules)
	if err != nil {
		return err
	}
	lateJudging, err := newWorkspace(registry, auditor, &cfg.Rules)
	if err != nil {
		return err
	}
	late := &lateCards{env: env, registry: registry, rows: database, outlet: broker, workspace: lateJudging, wake: make(chan struct{}, 1)}
	v := &verifier{
		env: env, limits: cfg.limits(), source: sources.traces, rows: database, outlet: broker,
		metrics:   newMetrics(env.Metrics),
		workspace: judging, newRows: database.NewTraceBatch, late: late,
	}
	deadLetters := &sink.DeadLetters{Env: env, Rows: database}
	results := &sink.Coherence{Env: env, Rows: database, Letters: broker, RetainUntil: registry.RetainUntil}
	decisions := &sink.Messages{Env: env, Rows: database, Ledger: broker, Policies: policies, RetainUntil: registry.RetainUntil}
	findings := &sink.Findings{Env: env, Ledger: broker}
	known := make(chan struct{})
	return service.Group(ctx,
		func(ctx context.Context) error {
			return env.ShowBacklogs(ctx, append(sources.backlogs(), late.backlog())...)
		},
		func(ctx context.Context) error { return late.watch(ctx, known) },
		func(ctx context.Context) error { return late.run(ctx) },
		func(ctx context.Context) error { return deadLetters.Run(ctx, sources.letters) },
		func(ctx context.Context) error { return findings.Run(ctx, sources.alerts) },
		after(known, func(ctx context.Context) error { return results.Run(ctx, sources.results) }), // cards define how long rows are retained
		after(known, func(ctx context.Context) error { return decisions.Run(ctx, sources.decisions) }),
		after(known, func(ctx context.Context) error { // before all cards are known, each card would need a request of its own
			env.Started()
			return v.run(ctx)
		}))
}

// sources are the streams that the stage reads.
type sources struct {
	broker                                      *stream.Client
	traces, letters, results, decisions, alerts *stream.Consumer
}

// source is one of these streams with its consumer.
type source struct {
	consumer        **stream.Consumer
	stream, durable string
}

func (s *sources) all() []source {
	return []source{
		{&s.traces, stream.Traces, stream.VerifierConsumer},
		{&s.letters, stream.DeadLetters, stream.DeadLetterConsumer},
		{&s.results, stream.Coherence, stream.CoherenceConsumer},
		{&s.decisions, stream.MessageRecords, stream.MessageConsumer},
		{&s.alerts, stream.Alerts, stream.FindingsConsumer},
	}
}

// backlogs returns the backlog of each source.
func (s *sources) backlogs() (consumers []service.Consumer) {
	for _, source := range s.all() {
		consumers = append(consumers, service.Consumer{Name: source.durable, Backlog: func(ctx context.Context) (uint64, error) {
			return s.broker.Backlog(ctx, source.stream, source.durable)
		}})
	}
	return consumers
}

// open opens the consumers that an earlier attempt did not open.
func (s *sources) open(ctx context.Context) (err error) {
	for _, source := range s.all() {
		if *source.consumer != nil {
			continue
		}
		*source.consumer, err = s.broker.OpenConsumer(ctx, stream.ConsumerConfig{Stream: source.stream, Durable: source.durable})
		if err != nil {
			return err
		}
	}
	return nil
}

// close closes the consumers that were opened.
func (s *sources) close() {
	for _, consumer := range []*stream.Consumer{s.alerts, s.decisions, s.results, s.letters, s.traces} {
		if consumer != nil {
			consumer.Close()
		}
	}
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

// newAuditor returns nil if there are no policies: then no trace is checked against messages.
func newAuditor(ctx context.Context, broker *stream.Client, policies *messages.Policies) (Messages, error) {
	if !policies.Given() {
		return nil, nil
	}
	bucket, err := broker.Bucket(ctx, stream.Messages)
	if err != nil {
		return nil, err
	}
	return messages.NewAuditor(policies, bucket), nil
}

func newWorkspace(registry Registry, messages Messages, rules *Rules) (workspace, error) {
	judge, err := aap.NewJudge(rules.thresholds())
	return workspace{registry: registry, messages: messages, rules: judge}, err
}
