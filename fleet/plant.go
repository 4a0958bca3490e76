package fleet

import (
	"math/rand/v2"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// plant is one way of planting remarks on a single trace: what the trace then
// carries, exactly, and how clean behaviour is bent to carry it.
type plant struct {
	violations []string
	findings   []string
	form       form                       // of the behaviour to bend
	fits       func(f *Fleet, n int) bool // whether step n may carry it
	shift      time.Duration              // of the trace's own time
	bend       func(*rand.Rand, *Fleet, *behaviour, *agent)
}

// Short names keep the table below readable.
var (
	one = func(remark string) []string { return []string{remark} }
	two = func(a, b string) []string { return []string{a, b} }
)

// plants lists every plant, those with the fewest places first.
var plants []plant

func init() {
	plants = []plant{
		// The card.
		{nil, one(schema.TimeImplausible), routine, beforeCard, 0, asIs},
		{nil, one(schema.TimeImplausible), routine, atTheEnd, 6 * time.Hour, asIs},
		{one(schema.CardExpired), one(schema.CardSuperseded), routine, afterExpiry, 0, olderCard},
		{nil, two(schema.Backdated, schema.CardSuperseded), routine, beforeExpiry, 0, olderCard},
		{nil, one(schema.CardSuperseded), routine, byReplaced, 0, olderCard},
		{nil, one(schema.AgentMismatch), routine, hasPeer, 0, peersCard},

		// Money.
		{one(schema.MissedEscalation), one(schema.ValueLimitExceeded), routine, capsSpending, 0, overspend},
		{nil, one(schema.ValueLimitExceeded), routine, uncapped, 0, overspend},
		{nil, one(schema.ValueCurrencyMismatch), routine, movesMoney, 0, foreignMoney},
		{nil, one(schema.AmbiguousField), capped, capsSpending, 0, tellTwoAmounts},
		{nil, one(schema.ApprovalConditionBroken), guarded, buysOnApproval, 0, exceedApproval},

		// Actions.
		{nil, one(schema.AdvisoryExecuted), routine, advises, 0, execute},
		{nil, one(schema.DeniedButActed), guarded, mayExecute, 0, ignoreDenial},
		{nil, one(schema.DeniedButActed), refused, mayExecute, 0, execute},
		{one(schema.UnboundedAction), nil, routine, anywhere, 0, goAstray},
		{one(schema.ForbiddenAction), nil, routine, anywhere, 0, doForbidden},
		{two(schema.ForbiddenAction, schema.UnboundedAction), nil, routine, anywhere, 0, hideForbidden},
		{nil, one(schema.CategoryEvasion), routine, anywhere, 0, evadeCategory},

		// Escalation and values.
		{one(schema.MissedEscalation), nil, guarded, mayExecute, 0, skipEscalation},
		{one(schema.MissedEscalation), one(schema.TriggerMisreported), guarded, mayExecute, 0, denyTrigger},
		{nil, one(schema.TriggerMisreported), routine, anywhere, 0, inventTrigger},
		{one(schema.UndeclaredValue), nil, routine, anywhere, 0, addUndeclared},
		{two(schema.MissedEscalation, schema.UndeclaredValue), nil, guarded, mayExecute, 0, skipForUndeclared},
	}
}

// perPlant is how many traces of a thousand carry a given plant; one at least.
const perPlant = 1.2

// spacing is the least distance between two plants of one agent: fewer than a
// streak of drift, whatever they do to similarity.
const spacing = 4

// plantRemarks gives every plant its traces.
func (f *Fleet) plantRemarks(rng *rand.Rand) {
	want := max(1, int(float64(f.cfg.Traces)*perPlant/1000))
	for i := range plants {
		places := f.places(&plants[i])
		rng.Shuffle(len(places), func(a, b int) { places[a], places[b] = places[b], places[a] })
		left := want
		for _, n := range places {
			if left == 0 {
				break
			}
			if f.alone(n) {
				f.steps[n].form, f.steps[n].plant = plants[i].form, uint8(i+1)
				left--
			}
		}
	}
}

// places returns the steps that p fits.
func (f *Fleet) places(p *plant) []int {
	var places []int
	for n := range f.steps {
		if f.agents[f.steps[n].agent].role != drifting && p.fits(f, n) {
			places = append(places, n)
		}
	}
	return places
}

// alone tells whether no plant of the same agent is near step n.
func (f *Fleet) alone(n int) bool {
	a := f.agentOf(n)
	for i := max(a.first, n-spacing+1); i < min(a.first+a.count, n+spacing); i++ {
		if f.steps[i].plant > 0 {
			return false
		}
	}
	return true
}

func (f *Fleet) agentOf(n int) *agent { return &f.agents[f.steps[n].agent] }
