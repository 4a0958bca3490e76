package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/plumbline/plumbline/machine"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// Bounds of the scenario Agents: how many agents work at most, and the fleet that it compares with.
const (
	mostAtWork = 50_000
	fewAgents  = 200
)

// Agents measures how fast the verifier, and then drift, work through a backlog of many agents, beside one of as many
// traces of few agents. Of more than mostAtWork agents, the others only have cards. All cards are rows before.
func Agents(ctx context.Context, cfg Config) (*Result, error) {
	all := cfg.Agents
	cfg.Agents = min(all, mostAtWork)
	many := cfg.newLoad()
	many.copies = max(0, all-len(many.cards))
	cfg.Agents = fewAgents
	few := cfg.newLoad()
	cfg.Agents = all
	return rounds(ctx, "agents", &cfg, many, func(ctx context.Context, cfg *Config, l *load, _ int) (run, beside *measured, err error) {
		if run, beside, err = measureAgents(ctx, cfg, l); err != nil {
			return nil, nil, err
		}
		alone := *cfg
		alone.WithoutFloor, alone.Profile = true, ""
		reference, _, err := measureAgents(ctx, &alone, few)
		if err != nil {
			return nil, nil, err
		}
		run.compare(reference)
		return run, beside, nil
	})
}

func measureAgents(ctx context.Context, cfg *Config, l *load) (run, beside *measured, err error) {
	s, err := openFor(ctx, cfg, l)
	defer func() { err = errors.Join(err, s.close()) }()
	var settled figures
	if err == nil {
		settled, err = s.settle(ctx)
	}
	if err == nil {
		err = s.publish(ctx, l)
	}
	if err == nil {
		err = s.begin()
	}
	if err == nil {
		run, err = s.clockBoth(ctx, l)
	}
	if err == nil {
		err = s.stopEngine()
	}
	if err != nil {
		return nil, nil, err
	}
	maps.Copy(run.other, settled)
	beside, err = s.measureFloor(ctx, l)
	return run, beside, err
}

// settle runs a verifier until every card is a row. So the verifier that is measured starts as one does beside rows that it has written.
func (s *site) settle(ctx context.Context) (figures, error) {
	bucket, err := s.client.StreamState(ctx, stream.CardRecords)
	if err == nil {
		err = s.begin()
	}
	var p *stage
	if err == nil {
		profile := s.cfg.Profile
		s.cfg.Profile = "" // of the verifier that is measured
		p, err = s.start(ctx, machine.Verifier)
		s.cfg.Profile = profile
	}
	var cards uint64
	if err == nil {
		err = s.await(ctx, leisurely, func(ctx context.Context) (bool, error) {
			reached, err := s.count(ctx, "SELECT max(revision) FROM card_positions")
			return reached >= bucket.LastSequence, err
		})
	}
	took := time.Since(s.began)
	if err == nil {
		_, cards, err = s.rows.CardPosition(ctx, bucket.Created)
	}
	if err != nil {
		return nil, err
	}
	used, err := s.used()
	if err != nil {
		return nil, err
	}
	s.cfg.Progress(fmt.Sprintf("%d cards are rows after %.1f s", cards, took.Seconds()))
	var spent time.Duration
	for _, u := range used {
		spent += u.cpu
	}
	s.stages = nil
	return figures{"cards": float64(cards), "cards_settled_s": took.Seconds(), "cards_settled_cpu_us": float64(spent.Microseconds()) / float64(cards)}, p.Stop(ctx)
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
	for range s.cfg.instances(machine.Verifier) {
		if _, err := s.start(ctx, machine.Verifier); err != nil {
			return nil, err
		}
	}
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
