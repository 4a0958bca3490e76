package verifier

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/messages"
	"github.com/plumbline/plumbline/pipeline/ownership"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/sink"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/tables"
)

// durables are the consumers of the sinks, by stream.
var durables = map[string]string{
	stream.DeadLetters:    stream.DeadLetterConsumer,
	stream.Coherence:      stream.CoherenceConsumer,
	stream.MessageRecords: stream.MessageConsumer,
	stream.Alerts:         stream.FindingsConsumer,
}

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

// inputs are what the stage opens in the broker before it starts.
type inputs struct {
	registry *cards.Registry
	bucket   stream.State // of cards
	auditor  *messages.Auditor
	leases   *stream.Bucket
	presence *stream.Presence
	sinks    map[string]*stream.Consumer // by stream
}

// open may be called again after an error.
func (in *inputs) open(ctx context.Context, cfg *Config, env *service.Env, broker *stream.Client, policies *messages.Policies) (err error) {
	if in.registry, err = cards.Open(ctx, broker, cfg.Cards.CacheBytes); err != nil {
		return err
	}
	if in.bucket, err = broker.StreamState(ctx, stream.CardRecords); err != nil {
		return err
	}
	if in.auditor, err = newAuditor(ctx, broker, policies); err != nil {
		return err
	}
	if in.leases, err = broker.Bucket(ctx, stream.Leases); err != nil {
		return err
	}
	for name, durable := range durables {
		if in.sinks[name] != nil { // an earlier attempt opened it
			continue
		}
		source, err := broker.OpenConsumer(ctx, stream.ConsumerConfig{Stream: name, Durable: durable})
		if err != nil {
			return err
		}
		in.sinks[name] = source
	}
	holder, err := service.Holder(env)
	if err == nil {
		in.presence, err = broker.Announce(ctx, holder)
	}
	return err
}

func (in *inputs) close() {
	for _, source := range in.sinks {
		source.Close()
	}
}

func serveOn(ctx context.Context, cfg *Config, env *service.Env, broker *stream.Client, policies *messages.Policies) (err error) {
	database, err := tables.Open(ctx, &cfg.Common, &cfg.ClickHouse, env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	in := inputs{sinks: map[string]*stream.Consumer{}}
	defer in.close()
	if err := env.Open(ctx, broker, func() error { return in.open(ctx, cfg, env, broker, policies) }); err != nil {
		return err
	}
	registry, bucket := in.registry, in.bucket
	registry.Expose(env.Metrics)
	rely := func() error { return registry.Rely(ctx, database, bucket) }
	if err := env.Retry.Do(ctx, "read the position of table cards", rely); err != nil {
		return service.UnlessEnded(ctx, err)
	}

	judges := min(runtime.GOMAXPROCS(0), maxJudges)
	benches := make([]workspace, judges+2) // for judging, late judging and rechecking
	for i := range benches {
		if benches[i], err = newWorkspace(registry, in.auditor, &cfg.Rules); err != nil {
			return err
		}
	}
	late := &lateCards{env: env, registry: registry, created: bucket.Created, rows: database, outlet: broker, workspace: benches[judges], rechecking: benches[judges+1], wake: make(chan struct{}, 1)}
	v := &verifier{
		env: env, cfg: cfg, rows: database, outlet: broker,
		metrics:    newMetrics(env.Metrics),
		workspaces: benches[:judges], newRows: database.NewTraceBatch, late: late, sliceRows: sliceRows, aheadRows: aheadRows,
	}
	results := &sink.Coherence{Env: env, Rows: database, Letters: broker, Cards: registry}
	decisions := &sink.Messages{Env: env, Rows: database, Ledger: broker, Policies: policies, Cards: registry}
	backlogs := []service.Consumer{late.backlog(), {Name: stream.VerifierConsumer, Backlog: func(ctx context.Context) (uint64, error) {
		return broker.Backlog(ctx, stream.Traces, stream.VerifierConsumer)
	}}}
	for name, durable := range durables {
		backlogs = append(backlogs, service.Consumer{Name: durable, Backlog: func(ctx context.Context) (uint64, error) {
			return broker.Backlog(ctx, name, durable)
		}})
	}
	known := make(chan struct{})
	return service.Group(ctx,
		func(ctx context.Context) error { return env.ShowBacklogs(ctx, backlogs...) },
		func(ctx context.Context) error { return late.watch(ctx, known) },
		late.run,
		func(ctx context.Context) error {
			return (&sink.DeadLetters{Env: env, Rows: database}).Run(ctx, in.sinks[stream.DeadLetters])
		},
		func(ctx context.Context) error {
			return (&sink.Findings{Env: env, Ledger: broker}).Run(ctx, in.sinks[stream.Alerts])
		},
		after(known, func(ctx context.Context) error { return results.Run(ctx, in.sinks[stream.Coherence]) }), // cards define how long rows are retained
		after(known, func(ctx context.Context) error { return decisions.Run(ctx, in.sinks[stream.MessageRecords]) }),
		after(known, func(ctx context.Context) error { // a revocation or card that existed at the start is never missed
			env.Started()
			return v.judgeShare(ctx, owners(v, broker, in.leases, in.presence))
		}))
}

// owners returns how the verifiers of a tenant share the partitions.
func owners(v *verifier, broker *stream.Client, leases ownership.Record, presence ownership.Presence) ownership.Config {
	return ownership.Config{
		Stage: stream.VerifierConsumer, Stream: stream.Traces, Silence: v.cfg.TakeoverAfter, Record: leases, Presence: presence, Broker: broker,
		Earlier: func(ctx context.Context, _ int) (stream.Progress, error) {
			return broker.ConsumerProgress(ctx, stream.Traces, stream.VerifierConsumer)
		},
		Open: func(ctx context.Context, from uint64) (ownership.Source, error) {
			return broker.OpenConsumer(ctx, stream.ConsumerConfig{Stream: stream.Traces, From: from, PrefetchBytes: prefetchBytes})
		},
		Retry: v.env.Retry, Log: v.env.Log, Metrics: v.env.Metrics,
	}
}

// judgeShare joins the verifiers of the tenant, and judges the traces of the partitions that this one
// owns, until ctx ends.
func (v *verifier) judgeShare(ctx context.Context, owners ownership.Config) error {
	member, err := ownership.Join(ctx, owners)
	if err != nil {
		return service.UnlessEnded(ctx, err)
	}
	return member.Run(ctx, func(ctx context.Context, term *ownership.Term) error {
		v.source = term
		v.late.recheckRecent(time.Now())
		return v.run(ctx)
	})
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
func newAuditor(ctx context.Context, broker *stream.Client, policies *messages.Policies) (*messages.Auditor, error) {
	if !policies.Given() {
		return nil, nil
	}
	bucket, err := broker.Bucket(ctx, stream.Messages)
	if err != nil {
		return nil, err
	}
	return messages.NewAuditor(policies, bucket), nil
}

func newWorkspace(registry Registry, auditor *messages.Auditor, rules *Rules) (workspace, error) {
	thresholds := aap.DefaultThresholds()
	thresholds.BehavioralSimilarity, thresholds.Methodology = rules.BehavioralSimilarity, rules.Methodology
	judge, err := aap.NewJudge(thresholds)
	return workspace{registry: registry, messages: auditor, rules: judge}, err
}
