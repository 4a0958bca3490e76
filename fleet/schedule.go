package fleet

import (
	"math/rand/v2"
	"time"
)

// step is the plan of one trace.
type step struct {
	at      int64 // time of publishing, in microseconds after the start of the window
	agent   int32
	session int32 // counted over the whole fleet
	turn    int32 // in the session, from 1
	end     bool  // of the session
	form    form
	plant   uint8 // index into Fleet.plants plus one; 0: no plant
	number  int32 // sequence number in the session, from 1; 0: the session has none
	back    int32 // how many steps before it the step is that it repeats; 0: it repeats none
	loop    bool  // it completes a loop
	gap     bool  // the agent does not publish the numbered trace before this one
}

// form is the unmodified behaviour of an agent.
type form uint8

const (
	routine form = iota // a bounded action
	guarded             // an action that a trigger names, escalated
	capped              // an action above the spending limit, escalated
	refused             // a deny trigger matches, and the agent declines
	slid                // as the agent's slide defines
)

// Bounds of a session's length, in traces.
const (
	shortest = 5
	longest  = 40
)

// Margin is the least distance of event times from Start.
const Margin = 5 * time.Second

// span is the time within which the traces are dated.
func (f *Fleet) span() time.Duration { return f.cfg.Window - Margin }

// noviceFrom is when a novice's first trace may be: some time after the issue of its card.
func (f *Fleet) noviceFrom() time.Duration { return f.span() / 4 }

// schedule plans total steps: each agent's share, its sessions and times.
func (f *Fleet) schedule(rng *rand.Rand, total int) {
	f.steps = make([]step, 0, total)
	weights := make([]float64, len(f.agents))
	sum, drift := 0.0, 0
	for i := range weights {
		if f.agents[i].role == drifting {
			drift++
			continue
		}
		weights[i] = 0.6 + 0.8*rng.Float64()
		sum += weights[i]
	}
	own := min(driftTraces*sum/max(1, float64(total-drift*driftTraces)), heaviest)
	for i := range weights {
		if f.agents[i].role == drifting {
			weights[i] = max(1, own)
			sum += weights[i]
		}
	}
	spare, run := float64(total-len(f.agents)), 0.0
	for i := range f.agents {
		run += weights[i]
		a := &f.agents[i]
		a.first = len(f.steps)
		a.count = i + 1 + int(spare*run/sum+0.5) - a.first
		for range a.count {
			f.steps = append(f.steps, step{agent: int32(i), form: a.usual(rng)})
		}
		f.split(rng, a)
		f.spread(rng, a)
	}
}

// heaviest bounds how many times the traces of another agent a drifting agent has.
const heaviest = 6

// usual draws the form of a trace.
func (a *agent) usual(rng *rand.Rand) form {
	switch p := rng.IntN(100); {
	case a.role == drifting && a.slide.from == guarded:
		return guarded
	case p < 6:
		return guarded
	case p < 10 && a.trade.Capped:
		return capped
	case p < 12:
		return refused
	}
	return routine
}

// split divides the agent's steps into sessions.
func (f *Fleet) split(rng *rand.Rand, a *agent) {
	steps := f.steps[a.first:]
	for len(steps) > 0 {
		size := len(steps)
		if size >= 2*shortest { // enough steps are left for another session
			most := longest
			if a.role == drifting {
				most = longestSlid
			}
			size = shortest + rng.IntN(min(most, size-shortest)-shortest+1)
		}
		for n := range steps[:size] {
			steps[n].session, steps[n].turn = int32(f.planted.Sessions), int32(n+1)
		}
		steps[size-1].end = true
		steps = steps[size:]
		f.planted.Sessions++
	}
}

// spread gives the agent's steps strictly increasing times in the window.
func (f *Fleet) spread(rng *rand.Rand, a *agent) {
	from := time.Duration(0)
	if a.role == novice {
		from = f.noviceFrom()
	}
	slot := (f.span() - from).Microseconds() / int64(a.count)
	for n := range a.count {
		jitter := rng.Int64N(max(1, slot*3/4))
		f.steps[a.first+n].at = from.Microseconds() + int64(n)*slot + jitter
	}
}

// eventTime returns the time in the trace of a step.
func (f *Fleet) eventTime(s *step) time.Time {
	at := f.open.Add(time.Duration(s.at) * time.Microsecond)
	if s.plant > 0 {
		at = at.Add(f.plants[s.plant-1].shift)
	}
	return at
}
