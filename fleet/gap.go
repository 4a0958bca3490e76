package fleet

import "math/rand/v2"

// perGap is the number of traces of a fleet for each planted gap.
const perGap = 1000

// plantGaps gives some sessions sequence numbers. In every second of them the agent does not
// publish one of its numbered traces. It uses only sessions without other plants, and a random
// source of its own, so nothing else depends on it.
func (f *Fleet) plantGaps() {
	rng := rand.New(rand.NewPCG(mix(f.cfg.Seed), 1))
	sessions := f.plainSessions()
	rng.Shuffle(len(sessions), func(a, b int) { sessions[a], sessions[b] = sessions[b], sessions[a] })
	for i, session := range sessions[:min(len(sessions), 2*f.cfg.Traces/perGap)] {
		steps := f.steps[session.first:session.end]
		above := len(steps) // the step before which a trace is missing
		if i%2 == 0 {
			above = 1 + rng.IntN(len(steps)-1)
		}
		for n := range steps {
			s := &steps[n]
			s.number, s.gap = s.turn, n == above
			if n >= above {
				s.number++
			}
		}
	}
}

// span is a range of steps.
type span struct{ first, end int }

// plainSessions returns the sessions of at least two traces without plants and without repeated
// lines.
func (f *Fleet) plainSessions() []span {
	marked := map[int32]bool{}
	for _, l := range f.lines {
		if s := &f.steps[l.step]; l.kind != plain || s.plant > 0 || f.agents[s.agent].role == drifting {
			marked[s.session] = true
		}
	}
	var sessions []span
	first := 0
	for n := range f.steps {
		if s := &f.steps[n]; s.end {
			if !marked[s.session] && n > first {
				sessions = append(sessions, span{first, n + 1})
			}
			first = n + 1
		}
	}
	return sessions
}
