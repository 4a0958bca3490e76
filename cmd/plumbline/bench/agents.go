package bench

import (
	"context"
	"time"

	"github.com/plumbline/plumbline/machine"
)

// Bounds of the scenario Agents: how many agents work at most, and the fleet that it compares with.
const (
	mostAtWork = 50_000
	fewAgents  = 200
)

// Agents measures how fast the verifier, and then drift, work through a backlog of many agents, beside one of as many
// traces of few agents. Of more than mostAtWork agents, the others only have cards.
func Agents(ctx context.Context, cfg Config) (*Result, error) {
	all := cfg.Agents
	cfg.Agents = min(all, mostAtWork)
	many := cfg.newLoad()
	many.copies = max(0, all-len(many.cards))
	cfg.Agents = fewAgents
	few := cfg.newLoad()
	cfg.Agents = all
	both := &backlog{stage: machine.Verifier, clock: (*site).clockBoth}
	return rounds(ctx, "agents", &cfg, many, func(ctx context.Context, cfg *Config, l *load, n int) (run, beside *measured, err error) {
		if run, beside, err = both.measure(ctx, cfg, l, n); err != nil {
			return nil, nil, err
		}
		alone := *cfg
		alone.WithoutFloor, alone.Profile = true, ""
		reference, _, err := both.measure(ctx, &alone, few, n)
		if err != nil {
			return nil, nil, err
		}
		run.compare(reference)
		run.other["cards"] = float64(len(l.cards) + l.copies)
		return run, beside, nil
	})
}

// compare adds what a measurement with few agents found, and how fast this one is beside it.
func (m *measured) compare(few *measured) {
	rate := func(m *measured, took time.Duration) float64 { return float64(len(m.load.records)) / took.Seconds() }
	m.other["few_first_s"] = few.other["first_s"]
	m.other["few_rate"], m.other["few_watched_rate"] = rate(few, few.took), rate(few, few.until["watched"])
	m.other["of_few"] = rate(m, m.took) / m.other["few_rate"]
	m.other["watched_of_few"] = rate(m, m.until["watched"]) / m.other["few_watched_rate"]
	m.other["few_cpu_us_sum"] = few.cpu().sum()
}

// clockBoth lets the verifier work through the backlog, and then drift beside the verifier, which has nothing to do. The time of drift
// counts from its own start. What the processes used is of both times.
func (s *site) clockBoth(ctx context.Context, l *load) (*measured, error) {
	m, err := s.clockVerifier(ctx, l)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	for range s.cfg.instances(machine.Drift) {
		if _, err := s.start(ctx, machine.Drift); err != nil {
			return nil, err
		}
	}
	if err := s.await(ctx, leisurely, s.counted(queryWatched, len(l.records))); err != nil {
		return nil, err
	}
	m.until = map[string]time.Duration{"watched": time.Since(began)}
	return m, s.finish(m)
}
