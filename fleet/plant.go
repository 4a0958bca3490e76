package fleet

import (
	"math/rand/v2"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// plant is one way to cause remarks: the exact remarks on a trace and its session, and the
// change of clean behaviour that causes them.
type plant struct {
	tracePlant
	session []string // findings on the session that name the trace
	after   form     // of the previous step in the same session; routine: any
}

// tracePlant is a plant without findings on the session.
type tracePlant struct {
	violations []string
	findings   []string
	form       form                       // of the behaviour to modify
	fits       func(f *Fleet, n int) bool // whether step n fits
	shift      time.Duration              // of the trace's own time
	bend       func(*rand.Rand, *Fleet, *behaviour, *agent)
}

// only and both keep the table below readable.
func only(remark string) []string { return []string{remark} }
func both(a, b string) []string   { return []string{a, b} }

// allPlants lists every plant; of each kind, those with the fewest places come first.
func allPlants() []plant {
	traces := []tracePlant{
		// The card.
		{nil, only(schema.TimeImplausible), routine, byNovice, early, asIs},
		{nil, both(schema.CardRevoked, schema.CardSuperseded), routine, afterRevocation, soon, olderCard},
		{nil, only(schema.TimeImplausible), routine, atTheEnd, late, asIs},
		{only(schema.CardExpired), only(schema.CardSuperseded), routine, afterExpiry, 0, olderCard},
		{nil, both(schema.Backdated, schema.CardSuperseded), routine, beforeExpiry, 0, olderCard},
		{nil, only(schema.CardSuperseded), routine, byReplaced, 0, olderCard},
		{only(schema.CardMismatch), only(schema.AgentMismatch), routine, hasPeer, 0, peersCard},
		{nil, only(schema.BadSignature), routine, signs, 0, forge},

		// Money.
		{only(schema.MissedEscalation), only(schema.ValueLimitExceeded), routine, capsSpending, 0, overspend},
		{nil, only(schema.ValueLimitExceeded), routine, uncapped, 0, overspend},
		{nil, only(schema.ValueCurrencyMismatch), routine, movesMoney, 0, foreignMoney},
		{nil, only(schema.AmbiguousField), capped, capsSpending, 0, tellTwoAmounts},
		{nil, only(schema.ApprovalConditionBroken), guarded, buysOnApproval, 0, exceedApproval},

		// Actions.
		{nil, only(schema.AdvisoryExecuted), routine, advises, 0, execute},
		{nil, only(schema.DeniedButActed), guarded, mayExecute, 0, ignoreDenial},
		{nil, only(schema.DeniedButActed), refused, mayExecute, 0, execute},
		{only(schema.UnboundedAction), nil, routine, anywhere, 0, goAstray},
		{only(schema.ForbiddenAction), nil, routine, anywhere, 0, doForbidden},
		{both(schema.ForbiddenAction, schema.UnboundedAction), only(schema.CategoryMismatch), routine, anywhere, 0, hideForbidden},
		{nil, only(schema.CategoryEvasion), routine, anywhere, 0, evadeCategory},
		{nil, only(schema.CategoryMismatch), routine, anywhere, 0, callForbidden},

		// Escalation and values.
		{only(schema.MissedEscalation), nil, guarded, mayExecute, 0, skipEscalation},
		{only(schema.MissedEscalation), only(schema.TriggerMisreported), guarded, mayExecute, 0, denyTrigger},
		{nil, only(schema.TriggerMisreported), capped, capsSpending, 0, misobserve},
		{only(schema.UndeclaredValue), nil, routine, anywhere, 0, addUndeclared},
		{both(schema.MissedEscalation, schema.UndeclaredValue), nil, guarded, mayExecute, 0, skipForUndeclared},
	}
	all := []plant{
		{tracePlant{nil, nil, routine, lateInSession, 0, repeatTurn}, only(schema.TurnOrder), routine},
		{tracePlant{nil, nil, routine, secondAndMayExecute, 0, actOnDenied}, only(schema.DeniedButActed), refused},
		{tracePlant{nil, nil, guarded, mayExecute, 0, actOnPending}, only(schema.ActedBeforeAnswer), routine},
		{tracePlant{nil, nil, guarded, mayExecute, 0, answerLate}, only(schema.TimeImplausible), routine},
		{tracePlant{nil, nil, guarded, anywhere, 0, contradict}, only(schema.ContradictoryAnswer), routine},
	}
	for _, p := range traces {
		all = append(all, plant{tracePlant: p})
	}
	return all
}

// The shifts of times: to before the card's issue; to after its revocation but within the clock
// tolerance; and to well after any receipt.
const (
	early = -15 * time.Minute
	soon  = 4 * time.Minute
	late  = 6 * time.Hour

	tolerance = 5 * time.Minute // of verdicts, for clocks
)

// perPlant is how many traces of a thousand have a given plant; at least one trace has it.
const perPlant = 1.2

// spacing is the least distance between two plants of one agent. It exceeds the length of a
// streak, so plants raise no drift alert, whatever their effect on similarity.
const spacing = 4

// plantRemarks gives every plant its traces.
func (f *Fleet) plantRemarks(rng *rand.Rand) {
	want := max(1, int(float64(f.cfg.Traces)*perPlant/1000))
	for i := range f.plants {
		places := f.places(&f.plants[i])
		rng.Shuffle(len(places), func(a, b int) { places[a], places[b] = places[b], places[a] })
		left := want
		for _, n := range places {
			if left == 0 {
				break
			}
			if f.alone(n) {
				f.steps[n].form, f.steps[n].plant = f.plants[i].form, uint8(i+1)
				if before := f.plants[i].after; before != routine {
					f.steps[n-1].form = before
				}
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

// alone reports whether no plant of the same agent is near step n.
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
