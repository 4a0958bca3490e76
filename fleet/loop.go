package fleet

import (
	"math/rand/v2"

	"github.com/plumbline/plumbline/schema"
)

// The lengths of the planted loops: the shortest that are reported.
const (
	loopedReads  = 10
	loopedWrites = 3
)

// perLoop is the number of traces of a fleet for each planted loop of reads, and of writes.
const perLoop = 5000

// plantLoops makes agents repeat one step of a session: a bounded action in some sessions, an
// approved one in others. It uses only sessions without other plants, and a random source of its
// own.
func (f *Fleet) plantLoops() {
	rng := rand.New(rand.NewPCG(mix(f.cfg.Seed), 2))
	sessions := f.plainSessions()
	rng.Shuffle(len(sessions), func(a, b int) { sessions[a], sessions[b] = sessions[b], sessions[a] })
	reads := max(1, f.cfg.Traces/perLoop)
	writes := reads
	for _, s := range sessions {
		switch n := s.end - s.first; {
		case f.steps[s.first].number > 0: // it may have a gap
		case reads > 0 && n > loopedReads && f.repeat(s.first+1, loopedReads, routine):
			reads--
		case writes > 0 && n > loopedWrites && f.repeat(s.first+1, loopedWrites, guarded):
			writes--
		}
	}
}

// repeat makes steps repeat the first of them, in the given form. It returns false, and changes
// nothing, where that step executes nothing.
func (f *Fleet) repeat(first, steps int, form form) bool {
	source := rand.NewPCG(0, 0)
	f.seed(source, first)
	var b behaviour
	s := f.steps[first]
	s.form = form
	if f.behave(rand.New(source), &b, f.agentOf(first), &s); b.typ != schema.ActionExecute {
		return false
	}
	for i := range steps {
		s := &f.steps[first+i]
		s.form, s.back, s.loop = form, int32(i), i == steps-1
	}
	return true
}
