package service

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/pipeline/obs"
	"github.com/plumbline/plumbline/pipeline/telemetry"
)

// Env is the environment of a stage.
type Env struct {
	Name        string // of the stage
	Version     string
	Log         *slog.Logger
	Metrics     prometheus.Registerer // labels every metric with stage=Name
	Gatherer    prometheus.Gatherer   // the whole process's metrics
	Health      *obs.Health
	Routes      *obs.Routes // routes that the stage adds to its process's HTTP interface
	Retry       *Retrier
	DrainBudget time.Duration
	Spans       *telemetry.Tracer // makes the spans of the stage; nil: they are sent nowhere
	Held        *Held             // the result of Hold, if the process took the lease before the stage began; else nil
}

// NewEnv returns the environment of one stage. The stage is not ready until it calls Started.
// Stages of one process share the registry and the health. If one of them serves HTTP for all,
// they share Routes too.
func NewEnv(stage, version string, log *slog.Logger, registry *prometheus.Registry, health *obs.Health) *Env {
	log = log.With("stage", stage)
	metrics := prometheus.WrapRegistererWith(prometheus.Labels{"stage": stage}, registry)
	health.Component(stage, stage)
	env := &Env{
		Name:        stage,
		Version:     version,
		Log:         log,
		Metrics:     metrics,
		Gatherer:    registry,
		Health:      health,
		Routes:      new(obs.Routes),
		DrainBudget: 30 * time.Second,
	}
	env.Retry = NewRetrier(log, metrics, env.Component)
	return env
}

// Component declares a component that the stage needs to be ready.
func (e *Env) Component(name string) *obs.Component { return e.Health.Component(name, e.Name) }

// Started reports that the stage has started. From then on it is ready while its peers are.
func (e *Env) Started() { e.Component(e.Name).Up() }

// Drain returns the context for the work in progress, which outlives ctx by the budget. A stage
// stops reading when ctx ends, and uses this context to finish (insert, acknowledge). stop
// releases it.
func (e *Env) Drain(ctx context.Context) (work context.Context, stop context.CancelFunc) {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(e.DrainBudget, cancel)
		context.AfterFunc(work, func() { timer.Stop() })
	})
	return work, func() { unhook(); cancel() }
}

// Group runs actors in parallel until all have returned. The first error ends the context of the
// others and is returned.
func Group(ctx context.Context, actors ...func(context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, actor := range actors {
		group.Go(func() error { return actor(ctx) })
	}
	return group.Wait()
}

// Consumer is one reader of a stream, as the backlog gauge needs it.
type Consumer struct {
	Name    string
	Backlog func(ctx context.Context) (uint64, error) // number of unfinished messages
}

// backlogEvery is how often the backlogs of consumers are read.
const backlogEvery = 5 * time.Second

// ShowBacklogs updates gauge plumbline_backlog_messages until ctx ends. A backlog that cannot be
// read has no value, so a scrape never sees an old one. A scrape does not wait.
func (e *Env) ShowBacklogs(ctx context.Context, consumers ...Consumer) error {
	gauge := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "plumbline_backlog_messages",
		Help: "Messages that a consumer has not acknowledged or processed. No value: the broker did not answer.",
	}, []string{"consumer"})
	if err := e.Metrics.Register(gauge); err != nil {
		return fmt.Errorf("metrics of backlogs: %w", err)
	}
	tick := time.NewTicker(backlogEvery)
	defer tick.Stop()
	for {
		showBacklogs(ctx, gauge, consumers)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// showBacklogs reads the backlogs of all consumers in parallel.
func showBacklogs(ctx context.Context, gauge *prometheus.GaugeVec, consumers []Consumer) {
	ctx, cancel := context.WithTimeout(ctx, obs.AnswerWithin)
	defer cancel()
	var group errgroup.Group
	for _, c := range consumers {
		group.Go(func() error {
			backlog, err := c.Backlog(ctx)
			if err != nil {
				gauge.DeleteLabelValues(c.Name)
				return nil // the gauge says that it is unknown, readiness says why
			}
			gauge.WithLabelValues(c.Name).Set(float64(backlog))
			return nil
		})
	}
	_ = group.Wait() // no consumer returns an error
}
