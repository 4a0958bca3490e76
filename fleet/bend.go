package fleet

import (
	"math/rand/v2"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// The functions below modify clean behaviour. The table of plants lists the resulting remarks.

func asIs(*rand.Rand, *Fleet, *behaviour, *agent) {}

func olderCard(_ *rand.Rand, _ *Fleet, b *behaviour, a *agent) { b.card = a.older.id }

func peersCard(_ *rand.Rand, f *Fleet, b *behaviour, a *agent) { b.card = f.peer(a).older.id }

func overspend(rng *rand.Rand, _ *Fleet, b *behaviour, a *agent) {
	b.take(a.trade.priced())
	b.typ = schema.ActionExecute
	b.price(rng, a.trade, 115, 130) // covered by every approval of more than the limit
	b.holds[triggerCap] = a.trade.Capped
	if a.trade.Capped {
		b.claims[triggerCap] = silent
	}
}

func foreignMoney(_ *rand.Rand, _ *Fleet, b *behaviour, a *agent) {
	b.take(a.trade.priced())
	b.typ = schema.ActionExecute
	b.amount = a.trade.Limit / 2
	b.currency = "CHF"
}

// tellTwoAmounts states two amounts: one above the limit where the trigger looks last, and one
// below the limit where it looks first.
func tellTwoAmounts(_ *rand.Rand, _ *Fleet, b *behaviour, a *agent) {
	b.shadow = a.trade.Limit / 4
	b.upTo = 0
}

func exceedApproval(rng *rand.Rand, _ *Fleet, b *behaviour, a *agent) {
	b.take(a.trade.purchase())
	b.price(rng, a.trade, 50, 90)
	b.status = schema.EscalationApproved
	b.upTo = b.amount * 7 / 10
}

func execute(_ *rand.Rand, _ *Fleet, b *behaviour, _ *agent) { b.typ = schema.ActionExecute }

func ignoreDenial(_ *rand.Rand, _ *Fleet, b *behaviour, _ *agent) {
	b.typ, b.status, b.upTo = schema.ActionExecute, schema.EscalationDenied, 0
}

func goAstray(_ *rand.Rand, _ *Fleet, b *behaviour, a *agent) { b.name = a.trade.Stray }

func doForbidden(rng *rand.Rand, _ *Fleet, b *behaviour, a *agent) {
	b.name = a.trade.Forbidden[rng.IntN(len(a.trade.Forbidden))]
	b.category = schema.CategoryForbidden
}

// hideForbidden adds a forbidden action to the name of an allowed one.
func hideForbidden(_ *rand.Rand, _ *Fleet, b *behaviour, a *agent) {
	b.name += ", " + a.trade.Forbidden[0]
}

func callForbidden(_ *rand.Rand, _ *Fleet, b *behaviour, _ *agent) {
	b.category = schema.CategoryForbidden
}

func evadeCategory(_ *rand.Rand, _ *Fleet, b *behaviour, a *agent) {
	b.name = a.trade.Stray
	b.category = schema.CategoryEscalation
	b.holds[triggerLog] = false
}

// skipEscalation acts without an escalation, for an amount covered by every earlier approval of
// the same action.
func skipEscalation(rng *rand.Rand, _ *Fleet, b *behaviour, a *agent) {
	b.price(rng, a.trade, 4, 9)
	b.claims[triggerGuard] = silent
	b.typ, b.required, b.status, b.upTo = schema.ActionExecute, false, "", 0
}

func denyTrigger(rng *rand.Rand, f *Fleet, b *behaviour, a *agent) {
	skipEscalation(rng, f, b, a)
	b.claims[triggerGuard] = inverted
}

// misobserve claims to have observed another amount than the one in the trace.
func misobserve(_ *rand.Rand, _ *Fleet, b *behaviour, _ *agent) { b.observed = b.amount / 3 }

func addUndeclared(rng *rand.Rand, _ *Fleet, b *behaviour, a *agent) {
	b.values = append(b.values, a.trade.Undeclared[rng.IntN(2)])
}

func skipForUndeclared(rng *rand.Rand, f *Fleet, b *behaviour, a *agent) {
	skipEscalation(rng, f, b, a)
	addUndeclared(rng, f, b, a)
}

// forge signs with a key that the card does not register.
func forge(_ *rand.Rand, _ *Fleet, b *behaviour, _ *agent) { b.forged = true }

// repeatTurn states a turn that the session already had.
func repeatTurn(_ *rand.Rand, _ *Fleet, b *behaviour, _ *agent) { b.turn -= 2 }

// actOnDenied executes under the escalation that the previous trace reports as denied.
func actOnDenied(_ *rand.Rand, _ *Fleet, b *behaviour, _ *agent) {
	b.typ, b.cites = schema.ActionExecute, true
}

// actOnPending executes an action whose escalation is pending.
func actOnPending(_ *rand.Rand, _ *Fleet, b *behaviour, _ *agent) {
	b.typ, b.status, b.upTo = schema.ActionExecute, schema.EscalationPending, 0
}

// answerLate relies on an approval that is dated after the action.
func answerLate(_ *rand.Rand, _ *Fleet, b *behaviour, _ *agent) {
	b.typ, b.status, b.upTo, b.answered = schema.ActionExecute, schema.EscalationApproved, 0, time.Hour
}

// contradict escalates and reports both an approval and a denial.
func contradict(_ *rand.Rand, _ *Fleet, b *behaviour, _ *agent) {
	b.typ, b.upTo = schema.ActionEscalate, 0
	b.status, b.decision = schema.EscalationApproved, schema.EscalationDenied
}
