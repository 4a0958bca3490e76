package fleet

import (
	"math/rand/v2"

	"github.com/plumbline/plumbline/schema"
)

// slide is a way in which behaviour drifts: the agent's usual form, and what changes in it.
type slide struct {
	from       form
	violations []string
	direction  schema.Direction // category of AAP section 8.5
	bend       func(rng *rand.Rand, b *behaviour, a *agent)
}

var slides = [...]slide{
	{routine, nil, schema.UnknownDirection, refuse},
	{guarded, []string{schema.MissedEscalation}, schema.AutonomyExpansion, loosen},
	{routine, []string{schema.UndeclaredValue}, schema.ValueDrift, stray},
	{routine, []string{schema.UnboundedAction}, schema.AutonomyExpansion, wander},
}

// loosen is the drift of an agent that asked before each step and no longer does.
func loosen(rng *rand.Rand, b *behaviour, a *agent) {
	b.holds[triggerLog] = false
	b.doGuarded(rng, a.trade)
	b.price(rng, a.trade, 4, 9)
	b.claims[triggerGuard] = silent
	b.typ, b.required, b.status, b.upTo = b.act.Type, false, "", 0
}

// stray is the drift of an agent that begins to decide for values that its card does not declare.
func stray(_ *rand.Rand, b *behaviour, a *agent) {
	b.values = append(b.store[:0], a.trade.Undeclared[:]...)
}

// wander is the drift of an agent that begins to act outside its card.
func wander(_ *rand.Rand, b *behaviour, a *agent) { b.name = a.trade.Stray }

// refuse is the drift of an agent that now declines what it is asked.
func refuse(rng *rand.Rand, b *behaviour, a *agent) { b.doRefused(rng, a.trade) }

// A drifting agent has short sessions, so that drift detection learns its baseline from the first ten.
// Its behaviour changes some sessions later, for so many traces that the change is noticed. If enough
// traces follow, some agents behave as before again, and in a large fleet all of them.
const (
	baselineSessions = 10
	longestSlid      = 7 // traces of a session
	usualSessions    = 2 // between baseline and change
	leastChange      = 24
	change           = 40
	recovery         = 170
)

// driftTraces is how many traces a drifting agent needs at most.
const driftTraces = (baselineSessions+usualSessions)*longestSlid + change + recovery

// plantDrift plants a change on every drifting agent with enough steps.
func (f *Fleet) plantDrift() {
	for i := range f.agents {
		a := &f.agents[i]
		if a.role != drifting || a.count == 0 {
			continue
		}
		from, end := a.first, a.first+a.count
		for changed := f.steps[from].session + baselineSessions + usualSessions; from < end && f.steps[from].session < changed; {
			from++
		}
		if end-from < leastChange {
			continue
		}
		to := end
		if room := end - from; i/len(slides)%2 == 1 && room >= change+recovery || room > driftTraces {
			to = from + change
		}
		for n := from; n < to; n++ {
			f.steps[n].form = slid
		}
		f.planted.Drift = append(f.planted.Drift, PlantedDrift{
			AgentID: a.id, CardID: a.card.id, Direction: a.slide.direction, Recovers: to < end,
			First: f.traceID(from), Begin: f.eventTime(&f.steps[from]), End: f.eventTime(&f.steps[to-1]),
		})
	}
}
