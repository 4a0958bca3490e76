package fleet

import (
	"iter"
	"math/rand/v2"
	"slices"
	"time"
)

// Config is what a fleet is made from. The zero value of a count takes its
// default.
type Config struct {
	Seed   uint64    // equal seeds plan alike; with equal starts they give equal bytes
	Agents int       // default 200
	Traces int       // distinct traces stored, default 20,000; at least one an agent
	Start  time.Time // when publishing begins; nothing unplanted is dated later
}

// The size of the demo's fleet.
const (
	DefaultAgents = 200
	DefaultTraces = 20_000
)

// window is how long before Start the fleet's traces begin.
const window = time.Hour

// Fleet is a simulated fleet, immutable and safe for concurrent use.
type Fleet struct {
	cfg    Config
	salt   uint64 // of the ids: another seed or start gives other ids
	open   time.Time
	agents []agent
	steps  []step // agent by agent, in event-time order
	lines  []line // in publishing order
	plants []plant

	planted Planted
}

// New plans a fleet. It never fails: a fleet too small for some plant has less
// planted, and Planted tells.
func New(cfg Config) *Fleet {
	if cfg.Agents <= 0 {
		cfg.Agents = DefaultAgents
	}
	if cfg.Traces <= 0 {
		cfg.Traces = DefaultTraces
	}
	cfg.Agents = min(cfg.Agents, cfg.Traces)
	cfg.Start = cfg.Start.UTC().Truncate(time.Microsecond)
	f := &Fleet{cfg: cfg, open: cfg.Start.Add(-window), plants: allPlants()}
	f.salt = mix(cfg.Seed ^ mix(uint64(cfg.Start.UnixMicro())))
	rng := rand.New(rand.NewPCG(mix(cfg.Seed), 0))
	noise := noiseFor(cfg)
	f.hire()
	f.schedule(rng, cfg.Traces-noise.conflicts)
	f.plantDrift(rng)
	f.plantRemarks(rng)
	f.arrange(rng, noise)
	f.plantGaps()
	f.tally()
	return f
}

// Line is one line as an agent publishes it.
type Line struct {
	Agent string // agent_id of the publisher
	Raw   []byte // JSON without a line break; the caller's to keep
}

// Lines yields what the fleet publishes, in order: Planted().Lines lines. Each
// call yields the same bytes again.
func (f *Fleet) Lines() iter.Seq[Line] {
	return func(yield func(Line) bool) {
		w := newWriter(f)
		for _, l := range f.lines {
			raw := w.line(l)
			if !yield(Line{Agent: f.agents[f.steps[l.step].agent].id, Raw: raw}) {
				return
			}
		}
	}
}

// Planted tells what the lines carry. The caller must not change it.
func (f *Fleet) Planted() Planted { return f.planted }

// seed makes the draws for step n depend on the step alone, so that every walk over
// the lines writes the same.
func (f *Fleet) seed(source *rand.PCG, n int) { source.Seed(mix(f.cfg.Seed), uint64(n)) }

// mix is the finaliser of SplitMix64, a bijection: distinct inputs give
// distinct, well-spread outputs.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// sorted sorts ids and drops repetitions.
func sorted(ids []string) []string {
	slices.Sort(ids)
	return slices.Compact(ids)
}
