package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/plumbline/plumbline/cmd/plumbline/bench/floor"
	"github.com/plumbline/plumbline/fleet"
	"github.com/plumbline/plumbline/machine"
)

// Scenario measures, and returns what it found. Its error says what is missing or failed.
type Scenario func(ctx context.Context, cfg Config) (*Result, error)

// Scenarios returns the scenarios by name.
func Scenarios() map[string]Scenario {
	return map[string]Scenario{"drain": Drain, "ingest": Ingest, "all": All, "steady": Steady, "seal": Seal, "drift": Drift,
		"agents": Agents, "rows": Rows}
}

// measurement measures one round: the scenario, and the floor unless it is left out. n is the number of the round.
type measurement func(ctx context.Context, cfg *Config, l *load, n int) (run, floor *measured, err error)

// Drain measures how fast the verifier works through a backlog.
func Drain(ctx context.Context, cfg Config) (*Result, error) {
	return rounds(ctx, "drain", &cfg, cfg.newLoad(), (&backlog{stage: machine.Verifier, clock: (*site).clockVerifier}).measure)
}

// Ingest measures how fast ingest alone makes posts durable.
func Ingest(ctx context.Context, cfg Config) (*Result, error) {
	cfg.Stages = []string{machine.Ingest}
	return rounds(ctx, "ingest", &cfg, cfg.newLoad(), measurePosts)
}

// All measures all stages, from posts over HTTP until the traces are queryable, sealed and watched by drift.
func All(ctx context.Context, cfg Config) (*Result, error) {
	return rounds(ctx, "all", &cfg, cfg.newLoad(), measurePosts)
}

// Steady measures the latencies at a given rate, and whether it is held.
func Steady(ctx context.Context, cfg Config) (*Result, error) {
	return rounds(ctx, "steady", &cfg, cfg.newLoad(), measurePosts)
}

// Seal measures how fast the exporter seals stored sessions.
func Seal(ctx context.Context, cfg Config) (*Result, error) {
	return rounds(ctx, "seal", &cfg, cfg.newLoad(), (&backlog{stage: machine.Exporter, clock: (*site).clockExporter, prepare: (*site).judge}).measure)
}

// Drift measures how fast drift works through a backlog.
func Drift(ctx context.Context, cfg Config) (*Result, error) {
	return rounds(ctx, "drift", &cfg, cfg.newLoad(), (&backlog{stage: machine.Drift, clock: (*site).clockDrift, prepare: (*site).judge}).measure)
}

func (c *Config) newLoad() *load {
	c.Progress(fmt.Sprintf("making %d traces of %d agents", c.Traces, c.Agents))
	return newLoad(fleet.Config{Agents: c.Agents, Traces: c.Traces, Unsigned: c.Unsigned}, time.Now())
}

// rounds measures a scenario several times and combines the results.
func rounds(ctx context.Context, name string, cfg *Config, l *load, measure measurement) (*Result, error) {
	if cfg.Stages == nil {
		cfg.Stages = machine.Stages()
	}
	all := make([]*Result, cfg.Rounds)
	for n := range all {
		run, beside, err := measure(ctx, cfg, l, n)
		if err != nil {
			return nil, fmt.Errorf("%s, round %d: %w", name, n+1, err)
		}
		all[n] = run.result(name, beside)
		cfg.Progress(fmt.Sprintf("%s, round %d of %d: %.0f traces/s, %.2f of the floor, %.1f µs of CPU a trace", name, n+1, len(all), all[n].Rate, all[n].Ratio, all[n].CPUSum))
	}
	r := combine(all)
	r.Options = *cfg
	return r, nil
}

// backlog is a scenario in which the traces are in the stream before the clock starts. Both the stage and the
// floor begin with an empty database and read the same stream.
type backlog struct {
	stage   string
	clock   func(*site, context.Context, *load) (*measured, error)
	prepare func(*site, context.Context, *load) error // what must be done before the clock; nil: nothing
}

func (b *backlog) measure(ctx context.Context, cfg *Config, l *load, n int) (run, beside *measured, err error) {
	s, err := open(ctx, cfg)
	defer func() { err = errors.Join(err, s.close()) }()
	if err == nil {
		err = s.register(ctx, l)
	}
	if err == nil {
		err = s.publish(ctx, l)
	}
	steps := []func() error{
		func() error { run, err = b.measureStage(ctx, s, l); return err },
		func() error { beside, err = s.measureFloor(ctx, l); return err },
	}
	if n%2 > 0 { // whichever is second finds the same stream with warmer caches
		slices.Reverse(steps)
	}
	for _, step := range steps {
		if err == nil {
			err = step()
		}
	}
	return run, beside, err
}

// measureStage measures the stage on a database of its own.
func (b *backlog) measureStage(ctx context.Context, s *site, l *load) (m *measured, err error) {
	defer func() { err = errors.Join(err, s.stopEngine()) }()
	if err := s.startEngine(ctx); err != nil {
		return nil, err
	}
	if b.prepare != nil {
		if err := b.prepare(s, ctx, l); err != nil {
			return nil, err
		}
	}
	if err := s.begin(); err != nil {
		return nil, err
	}
	for range s.cfg.instances(b.stage) {
		if _, err := s.start(ctx, b.stage); err != nil {
			return nil, err
		}
	}
	return b.clock(s, ctx, l)
}

// measureFloor measures the floor on a database of its own; it returns nil if the floor is left out.
func (s *site) measureFloor(ctx context.Context, l *load) (m *measured, err error) {
	if s.cfg.WithoutFloor {
		return nil, nil
	}
	defer func() { err = errors.Join(err, s.stopEngine()) }()
	if err := s.startEngine(ctx); err != nil {
		return nil, err
	}
	servers := floor.Servers{NATSURL: s.broker.URL(), ClickHouseDSN: s.engine.AdminDSN()}
	if err := servers.Prepare(ctx); err != nil {
		return nil, err
	}
	if err := s.begin(); err != nil {
		return nil, err
	}
	if _, err := s.start(ctx, floorName); err != nil {
		return nil, err
	}
	if m, err = s.stop(ctx, l, s.acknowledged(floor.Consumer), closely); err != nil {
		return nil, err
	}
	rows, err := servers.Rows(ctx)
	return m, errors.Join(err, expect("rows of the floor", rows, len(l.records)))
}

// besideFloor measures the floor on a site of its own, with a part of the load.
func besideFloor(ctx context.Context, cfg *Config, l *load) (m *measured, err error) {
	if cfg.WithoutFloor {
		return nil, nil
	}
	s, err := open(ctx, cfg)
	defer func() { err = errors.Join(err, s.close()) }()
	part := l.only(floorTraces)
	if err == nil {
		err = s.publish(ctx, part)
	}
	if err != nil {
		return nil, err
	}
	return s.measureFloor(ctx, part)
}

// floorTraces is how many traces of a load that is not a backlog the floor works through.
const floorTraces = 100_000

// Polling intervals. What is asked from the database is asked less often.
const (
	closely   = 10 * time.Millisecond
	leisurely = 250 * time.Millisecond
)

// stop stops the clock when done, and reads what the processes used.
func (s *site) stop(ctx context.Context, l *load, done func(context.Context) (bool, error), every time.Duration) (*measured, error) {
	if err := s.await(ctx, every, done); err != nil {
		return nil, err
	}
	m := &measured{load: l, took: time.Since(s.began)}
	return m, s.finish(m)
}

// finish reads what the processes used, and what they logged.
func (s *site) finish(m *measured) (err error) {
	if m.used, err = s.used(); err != nil {
		return err
	}
	m.stored, err = s.stored()
	m.warnings = s.warnings()
	return err
}

// acknowledged is done when a consumer has acknowledged every trace that is in the stream when it
// is first asked. The stream is asked once: its answer costs the broker more than a position.
func (s *site) acknowledged(consumer string) func(context.Context) (bool, error) {
	var last uint64
	return func(ctx context.Context) (done bool, err error) {
		if last == 0 {
			if last, err = s.lastTrace(ctx); err != nil {
				return false, err
			}
		}
		reached, err := s.reached(ctx, consumer)
		return reached >= last, err
	}
}
