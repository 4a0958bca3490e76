package fleet

import (
	"math/rand/v2"

	"github.com/plumbline/plumbline/schema"
)

// baseline is the number of traces that form an agent's baseline for drift detection. sustained
// is the length of a streak that raises an alert. Both are the defaults of AAP sections 8.2 and
// 8.3, repeated here because the fleet imports no judge.
const (
	baseline  = 10
	sustained = 3
)

// slide is a way in which behaviour drifts: the agent's usual form during its baseline, and its
// behaviour in a streak. A slid trace shares little with the baseline except its confidence,
// which is low.
type slide struct {
	from       form
	violations []string
	bend       func(rng *rand.Rand, b *behaviour, a *agent)
}

var slides = [...]slide{
	{routine, nil, flood},
	{guarded, nil, loosen},
	{routine, []string{schema.UndeclaredValue}, stray},
}

// flood is the drift of an agent that decided by itself and now leaves everything to its
// principal.
func flood(rng *rand.Rand, b *behaviour, a *agent) {
	b.take(&a.trade.Guarded[0])
	b.holds = [triggerCount]bool{triggerGuard: true}
	b.amount = 0
	b.typ, b.category = schema.ActionEscalate, schema.CategoryEscalation
	b.required, b.status = true, schema.EscalationPending
	b.values = append(b.store[:0], a.trade.Rare)
	b.confidence = 36 + rng.IntN(12)
}

// loosen is the drift of an agent that asked before each step and now ignores its triggers.
func loosen(rng *rand.Rand, b *behaviour, a *agent) {
	b.evaluated = false
	b.holds[triggerLog] = false
	for i := range b.claims {
		b.claims[i] = silent
	}
	b.values = append(b.store[:0], a.trade.Rare)
	b.confidence = 40 + rng.IntN(15)
}

// stray is flood with decisions for undeclared values.
func stray(rng *rand.Rand, b *behaviour, a *agent) {
	flood(rng, b, a)
	b.values = append(b.store[:0], a.trade.Undeclared[:]...)
}

// Bounds of a streak, and the least number of ordinary traces between two.
const (
	streakMost = 7
	recovery   = 5
)

// plantDrift plants one or two streaks on every drifting agent with enough steps.
func (f *Fleet) plantDrift(rng *rand.Rand) {
	for i := range f.agents {
		a := &f.agents[i]
		if a.role != drifting {
			continue
		}
		from := a.first + baseline
		for range 1 + i%2 {
			from = f.plantStreak(rng, a, from) + recovery
		}
	}
}

// plantStreak plants one streak in the first half of the agent's remaining steps from `from`
// on, and returns its end.
func (f *Fleet) plantStreak(rng *rand.Rand, a *agent, from int) int {
	end := a.first + a.count
	room := end - from - sustained
	if room <= 0 {
		return end
	}
	start := from + 1 + rng.IntN((room+1)/2)
	length := min(sustained+rng.IntN(streakMost-sustained+1), end-start)
	for n := start; n < start+length; n++ {
		f.steps[n].form = slid
	}
	f.planted.Drift = append(f.planted.Drift, PlantedDrift{
		AgentID: a.id, CardID: a.card.id,
		TraceIDs: [sustained]string{f.traceID(start), f.traceID(start + 1), f.traceID(start + 2)},
	})
	return start + length
}
