package fleet

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// line is one published line: a step, unchanged or with noise.
type line struct {
	at    int64 // microseconds after the start of the window; the order of publishing
	step  int32
	kind  kind
	spoil uint8 // of a broken line: index into spoils
}

// kind is the relation of a line to its step.
type kind uint8

const (
	plain     kind = iota
	conflict       // the step's trace_id with other content
	duplicate      // the step's bytes repeated
	broken         // a separate trace that cannot be admitted
)

// noise is how many additional lines of each kind are published.
type noise struct{ duplicates, conflicts, broken int }

// noiseFor returns noise in proportion to the traces, and none for the smallest fleets.
func noiseFor(cfg Config) noise {
	if cfg.Traces < 4*cfg.Agents || cfg.Traces < 100 {
		return noise{}
	}
	return noise{
		duplicates: max(1, cfg.Traces/500),
		conflicts:  max(1, cfg.Traces/2000),
		broken:     max(len(spoils), cfg.Traces/1000),
	}
}

// arrange puts all lines into publishing order.
func (f *Fleet) arrange(rng *rand.Rand, n noise) {
	f.lines = make([]line, 0, len(f.steps)+n.duplicates+n.conflicts+n.broken)
	for i := range f.steps {
		f.lines = append(f.lines, line{at: f.steps[i].at, step: int32(i)})
	}
	taken := map[int]bool{}
	for range n.conflicts {
		f.echo(rng, taken, conflict, time.Microsecond)
	}
	for range n.duplicates {
		f.echo(rng, taken, duplicate, time.Minute)
	}
	for i := range n.broken {
		step := rng.IntN(len(f.steps))
		f.lines = append(f.lines, line{at: f.steps[step].at, step: int32(step),
			kind: broken, spoil: uint8(i % len(spoils))})
	}
	slices.SortFunc(f.lines, func(a, b line) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.step, b.step), cmp.Compare(a.kind, b.kind))
	})
}

// echo publishes a step again, at most `within` later. A conflict follows its step soon, so
// both belong to one open session.
func (f *Fleet) echo(rng *rand.Rand, taken map[int]bool, k kind, within time.Duration) {
	for range len(f.steps) {
		n := rng.IntN(len(f.steps))
		if s := &f.steps[n]; !taken[n] && s.plant == 0 && !s.end && f.agents[s.agent].role != drifting {
			taken[n] = true
			later := 1 + rng.Int64N(within.Microseconds())
			f.lines = append(f.lines, line{at: s.at + later, step: int32(n), kind: k})
			return
		}
	}
}

// spoil is one way to break a line, and the reason of its refusal.
type spoil struct {
	reason   string
	old, new string // new replaces the first old; an empty new cuts the line there
}

var spoils = [...]spoil{
	{schema.ReasonInvalidJSON, `"values_applied":[`, ""},
	{schema.ReasonInvalidTrace, `"confidence":0.`, `"confidence":1.`},
	{schema.ReasonInvalidJSON, `"card_id":`, `"trace_id":"tr-again","card_id":`},
	{schema.ReasonInvalidTrace, `"category":"`, `"category":"un`},
	{schema.ReasonInvalidJSON, `"selection_reasoning":"`, "\"selection_reasoning\":\"\xff\xfe"},
	{schema.ReasonInvalidTrace, `Z","action":`, `","action":`},
	{schema.ReasonInvalidTrace, `"selected":"`, `"selected":"no-`},
	{schema.ReasonInvalidTrace, `"values_applied":`, `"values_considered":`},
}
