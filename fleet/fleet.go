package fleet

import (
	"cmp"
	"iter"
	"math/rand/v2"
	"slices"
	"time"
)

// Config configures a fleet. A count of zero means its default.
type Config struct {
	Seed   uint64        // equal seeds give equal plans; with equal starts they give equal bytes
	Agents int           // default 200
	Traces int           // distinct traces stored, default 20,000; at least one for each agent
	Start  time.Time     // when publishing begins; only planted traces have a later date
	Window time.Duration // how long before Start the traces begin, more than Margin, default an hour; plants that do not fit into it are missing

	Unsigned bool // no agent signs its traces, and no bad signature is planted
}

// The size of the demo's fleet.
const (
	DefaultAgents = 200
	DefaultTraces = 20_000
)

// DefaultWindow is how long before Start the fleet's traces begin.
const DefaultWindow = time.Hour

// Fleet is a simulated fleet, immutable and safe for concurrent use.
type Fleet struct {
	cfg    Config
	salt   uint64 // of the ids: another seed or start gives other ids
	open   time.Time
	agents []agent
	steps  []step // ordered by agent, then by event time
	lines  []line // in publishing order
	plants []plant

	planted Planted
}

// New plans a fleet. It never fails: a fleet that is too small for some plants lacks them,
// which Planted shows.
func New(cfg Config) *Fleet {
	if cfg.Agents <= 0 {
		cfg.Agents = DefaultAgents
	}
	if cfg.Traces <= 0 {
		cfg.Traces = DefaultTraces
	}
	cfg.Agents = min(cfg.Agents, cfg.Traces)
	cfg.Window = max(cmp.Or(cfg.Window, DefaultWindow), Margin+time.Millisecond)
	cfg.Start = cfg.Start.UTC().Truncate(time.Microsecond)
	f := &Fleet{cfg: cfg, open: cfg.Start.Add(-cfg.Window), plants: allPlants()}
	f.salt = mix(cfg.Seed ^ mix(uint64(cfg.Start.UnixMicro())))
	rng := rand.New(rand.NewPCG(mix(cfg.Seed), 0))
	noise := noiseFor(cfg)
	f.hire()
	f.schedule(rng, cfg.Traces-noise.conflicts)
	f.plantDrift()
	f.plantRemarks(rng)
	f.arrange(rng, noise)
	f.plantGaps()
	f.plantLoops()
	f.tally()
	return f
}

// Line is one line that an agent publishes.
type Line struct {
	Agent string    // agent_id of the publisher
	Raw   []byte    // JSON without a line break; owned by the caller
	At    time.Time // when it is published: the time in the trace, but for planted ones and repeated lines
}

// Lines yields the published lines in order: Planted().Lines lines. Each call yields the same
// bytes.
func (f *Fleet) Lines() iter.Seq[Line] {
	return func(yield func(Line) bool) {
		source := rand.NewPCG(0, 0)
		w := &writer{f: f, source: source, rng: rand.New(source)}
		for _, l := range f.lines {
			raw := w.line(l)
			at := f.open.Add(time.Duration(l.at) * time.Microsecond)
			if !yield(Line{Agent: f.agents[f.steps[l.step].agent].id, Raw: raw, At: at}) {
				return
			}
		}
	}
}

// Planted returns the truth about the lines. The caller must not modify it.
func (f *Fleet) Planted() Planted { return f.planted }

// seed makes the random draws for step n depend on the step alone, or on the one that it repeats, so
// every iteration over the lines gives the same bytes.
func (f *Fleet) seed(source *rand.PCG, n int) {
	source.Seed(mix(f.cfg.Seed), uint64(n-int(f.steps[n].back)))
}

// mix is the finaliser of SplitMix64, a bijection: distinct inputs give distinct, well-spread
// outputs.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// sorted sorts ids and removes duplicates.
func sorted(ids []string) []string {
	slices.Sort(ids)
	return slices.Compact(ids)
}
