package fleet

import (
	"math/rand/v2"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// behaviour is everything about one trace that a judge could examine. Ordinary behaviour is
// clean; plants modify it.
type behaviour struct {
	card     string
	act      *action
	name     string // of the action; that of act unless a plant changes it
	typ      schema.ActionType
	category schema.Category

	values     []string
	confidence int // hundredths

	amount   int64 // cents; 0: no money moves
	currency string
	shadow   int64 // a second amount, in context.metadata; 0: none

	evaluated bool
	holds     [triggerCount]bool // the triggers whose condition is true
	claims    [triggerCount]claim
	observed  int64 // cents that the trace claims to have observed for the cap; 0: no claim
	required  bool
	status    schema.EscalationStatus
	upTo      int64                   // cents up to which the approval is valid; 0: no condition
	decision  schema.EscalationStatus // of the principal's response; empty: equal to status
	answered  time.Duration           // how long after the trace; mostly negative

	turn   int32 // in the session, as the trace states it
	cites  bool  // the trace names the escalation of the previous trace
	forged bool  // the signature is made with a key that the card does not register

	store [4]string // memory of values
}

// claim is the statement of the trace about one trigger.
type claim uint8

const (
	honest claim = iota
	silent
	inverted
)

// matched returns the trace's claim about trigger i, and whether there is one.
func (b *behaviour) matched(i int) (matched, claimed bool) {
	switch b.claims[i] {
	case silent:
		return false, false
	case inverted:
		return !b.holds[i], true
	}
	return b.holds[i], true
}

// behave fills b with the behaviour of agent a in step s, including its plant.
func (f *Fleet) behave(rng *rand.Rand, b *behaviour, a *agent, s *step) {
	*b = behaviour{card: a.card.id, currency: a.trade.Currency, evaluated: true, turn: s.turn, answered: -answerDelay}
	b.values = append(b.store[:0], a.trade.Core[:]...)
	b.confidence = 72 + rng.IntN(26)
	if rng.IntN(3) == 0 {
		b.values = append(b.values, a.trade.Extra)
	}
	switch s.form {
	case routine:
		b.doRoutine(rng, a.trade)
	case guarded:
		b.doGuarded(rng, a.trade)
	case capped:
		b.doCapped(rng, a.trade)
	case refused:
		b.doRefused(rng, a.trade)
	case slid:
		b.doRoutine(rng, a.trade)
		a.slide.bend(rng, b, a)
	}
	if s.plant > 0 {
		f.plants[s.plant-1].bend(rng, f, b, a)
	}
}

func (b *behaviour) take(act *action) {
	b.act, b.name, b.typ = act, act.Name, act.Type
}

func (b *behaviour) doRoutine(rng *rand.Rand, t *archetype) {
	b.take(&t.Routine[rng.IntN(len(t.Routine))])
	b.category = schema.CategoryBounded
	b.price(rng, t, 5, 90)
	b.holds[triggerLog] = rng.IntN(25) == 0
}

func (b *behaviour) doGuarded(rng *rand.Rand, t *archetype) {
	b.take(&t.Guarded[rng.IntN(len(t.Guarded))])
	b.price(rng, t, 10, 90)
	b.holds[triggerGuard] = true
	b.ask(rng)
}

func (b *behaviour) doCapped(rng *rand.Rand, t *archetype) {
	b.take(t.priced())
	b.price(rng, t, 110, 400)
	b.holds[triggerCap] = true
	b.ask(rng)
}

func (b *behaviour) doRefused(rng *rand.Rand, t *archetype) {
	b.take(&t.Routine[rng.IntN(len(t.Routine))])
	b.price(rng, t, 5, 90)
	b.typ = schema.ActionDeny
	b.holds[triggerDeny] = true
	b.category, b.required, b.status = schema.CategoryEscalation, true, schema.EscalationDenied
}

// price draws an amount between two percentages of the limit.
func (b *behaviour) price(rng *rand.Rand, t *archetype, from, to int64) {
	if b.act.Priced && t.Limit > 0 {
		b.amount = t.Limit * (from + rng.Int64N(to-from)) / 100
	}
}

// ask escalates: most escalations are approved, some only up to an amount.
func (b *behaviour) ask(rng *rand.Rand) {
	b.category, b.required = schema.CategoryEscalation, true
	switch p := rng.IntN(10); {
	case p < 7:
		b.status = schema.EscalationApproved
		if b.amount > 0 && p < 4 {
			b.upTo = b.amount * 12 / 10
		}
		return
	case p < 9:
		b.status = schema.EscalationPending
	default:
		b.status = schema.EscalationTimeout
	}
	b.typ = schema.ActionEscalate
}

// acted reports whether the action was carried out, so the trace can report its execution.
func (b *behaviour) acted() bool {
	return b.typ == schema.ActionExecute || b.typ == schema.ActionRecommend
}
