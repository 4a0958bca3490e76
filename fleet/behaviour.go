package fleet

import (
	"math/rand/v2"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// behaviour is everything about one trace that a judge could look at. An
// ordinary one is clean; plants bend it.
type behaviour struct {
	card     string
	act      *action
	name     string // of the action; act's own unless bent
	typ      schema.ActionType
	category schema.Category

	values     []string
	confidence int // hundredths

	amount   int64 // cents; 0: no money moves
	currency string
	shadow   int64 // another amount, told in context.metadata; 0: none

	evaluated bool
	holds     [triggerCount]bool // which triggers hold: the truth
	claims    [triggerCount]claim
	observed  int64 // cents that the trace claims to have seen for the cap; 0: it does not say
	required  bool
	status    schema.EscalationStatus
	upTo      int64                   // cents that the approval is good for; 0: no condition
	decision  schema.EscalationStatus // of the principal's response; empty: as status
	answered  time.Duration           // how long after the trace; mostly before

	turn   int32 // in the session, as the trace states it
	cites  bool  // the trace names the escalation of the trace before it
	forged bool  // the signature is by a key that the card does not register

	store [4]string // behind values
}

// claim is what the trace says about one trigger.
type claim uint8

const (
	honest claim = iota
	silent
	inverted
)

// matched returns what the trace claims about trigger i, and whether it claims anything.
func (b *behaviour) matched(i int) (matched, claimed bool) {
	switch b.claims[i] {
	case silent:
		return false, false
	case inverted:
		return !b.holds[i], true
	}
	return b.holds[i], true
}

// behave fills b with what agent a does in step s, its plant included.
func (f *Fleet) behave(rng *rand.Rand, b *behaviour, a *agent, s *step) {
	*b = behaviour{card: a.card.id, currency: a.trade.currency, evaluated: true, turn: s.turn, answered: -answerDelay}
	b.values = append(b.store[:0], a.trade.core[:]...)
	b.confidence = 72 + rng.IntN(26)
	if rng.IntN(3) == 0 {
		b.values = append(b.values, a.trade.extra)
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
	b.act, b.name, b.typ = act, act.name, act.typ
}

func (b *behaviour) doRoutine(rng *rand.Rand, t *archetype) {
	b.take(&t.routine[rng.IntN(len(t.routine))])
	b.category = schema.CategoryBounded
	b.price(rng, t, 5, 90)
	b.holds[triggerLog] = rng.IntN(25) == 0
}

func (b *behaviour) doGuarded(rng *rand.Rand, t *archetype) {
	b.take(&t.guarded[rng.IntN(len(t.guarded))])
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
	b.take(&t.routine[rng.IntN(len(t.routine))])
	b.price(rng, t, 5, 90)
	b.typ = schema.ActionDeny
	b.holds[triggerDeny] = true
	b.category, b.required, b.status = schema.CategoryEscalation, true, schema.EscalationDenied
}

// price draws an amount between two percentages of the limit.
func (b *behaviour) price(rng *rand.Rand, t *archetype, from, to int64) {
	if b.act.priced && t.limit > 0 {
		b.amount = t.limit * (from + rng.Int64N(to-from)) / 100
	}
}

// ask escalates: most are approved, some of these up to an amount.
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

// acted reports whether the action was carried out, so that the trace can say
// what it really did.
func (b *behaviour) acted() bool {
	return b.typ == schema.ActionExecute || b.typ == schema.ActionRecommend
}
