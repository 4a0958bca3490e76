package aap

import (
	"fmt"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/aap/condition"
	"github.com/plumbline/plumbline/aap/similarity"
	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/schema/signature"
)

// Compiled is a card prepared for judging. It is immutable and may be shared between
// goroutines.
type Compiled struct {
	Card       *schema.Card
	SignedBy   *schema.Key // the key that the card's signature verified with in Register; nil if unsigned or not checked
	SelfSigned bool        // SignedBy is the card's own key and not one that was passed to Register

	*Rules
}

// Rules are the blocks of values and autonomy of a card, prepared for judging. They are most of
// the work and of the memory of a Compiled. Cards with the same Policy may share them. They are
// immutable.
type Rules struct {
	values   schema.Values
	autonomy schema.Autonomy

	envelope   Envelope
	declared   map[string]struct{}
	triggers   []trigger
	claims     claimIndex
	limit      *valueLimit // nil without max_autonomous_value
	similarity *similarity.Card
}

// trigger is an escalation trigger with its compiled condition. It also holds the descriptions
// of its findings, so reporting one costs no allocation.
type trigger struct {
	action  schema.TriggerAction
	claim   int             // its place among the claims of a trace
	expr    *condition.Expr // nil if the condition does not parse
	problem error           // why it does not parse

	missed, timedOut, logged, denied, misreported, unconfirmed, misobserved, unparsed string
}

// valueLimit is max_autonomous_value (AAP section 4.5) as conditions.
type valueLimit struct {
	priced   *condition.Expr // holds if the trace names a value
	exceeded *condition.Expr // holds if the value exceeds the limit
	foreign  *condition.Expr // holds if the value is in another currency; nil where the card names none
	amount   string          // "100 USD"
}

// Register decodes, validates and compiles a new card, and checks its signature (AAP section
// 9.2) against the given keys, which the caller trusts, and then against the card's own. An
// unsigned card passes: signing is a SHOULD. The error is a *schema.Refusal with every fault,
// including faults of conditions and signature.
func Register(raw []byte, trusted ...schema.Key) (*Compiled, error) {
	card, err := schema.DecodeCard(raw)
	if err != nil {
		return nil, err
	}
	c := Compile(card)
	var faults []schema.Fault
	for i := range c.triggers {
		if err := c.triggers[i].problem; err != nil {
			faults = append(faults, schema.Fault{Pointer: c.conditionPointer(i), Message: err.Error()})
		}
	}
	if card.Signature != nil {
		// The author of a card also chooses the card's own keys: a signature by these alone shows
		// that the card is unchanged but not who made it.
		key, err := signature.Find(card.Raw, *card.Signature, slices.Concat(trusted, card.Keys))
		if err != nil {
			faults = append(faults, schema.Fault{Pointer: "/signature", Message: err.Error()})
		}
		c.SignedBy = &key
		c.SelfSigned = !slices.ContainsFunc(trusted, func(k schema.Key) bool { return k.PublicKey.Equal(key.PublicKey) })
	}
	if len(faults) > 0 {
		return nil, &schema.Refusal{Reason: schema.ReasonInvalidCard, Faults: faults}
	}
	return c, nil
}

// Compile prepares a card for judging. Register refuses a condition that does not parse;
// Compile accepts it, and every verdict then has the warning unparsed_condition.
func Compile(card *schema.Card) *Compiled {
	r := &Rules{
		values:     card.Values,
		autonomy:   card.Autonomy,
		envelope:   NewEnvelope(card),
		declared:   make(map[string]struct{}, len(card.Values.Declared)),
		limit:      newValueLimit(card.Autonomy.MaxAutonomousValue),
		similarity: similarity.NewCard(card),
	}
	for _, value := range card.Values.Declared {
		r.declared[value] = struct{}{}
	}
	for _, t := range card.Autonomy.EscalationTriggers {
		compiled := newTrigger(t)
		compiled.claim = r.claims.add(t.Condition)
		r.triggers = append(r.triggers, compiled)
	}
	return r.For(card)
}

// For returns the compiled form of a card with the Policy of the card that the rules were
// compiled from. The lists of card become those of that one, so that memory has them once.
func (r *Rules) For(card *schema.Card) *Compiled {
	card.Values, card.Autonomy = r.values, r.autonomy
	return &Compiled{Card: card, Rules: r}
}

// Envelope says what a card permits for single actions, without a trace (AAP section 4.5). It
// applies the rules of Verify and is immutable.
type Envelope struct {
	bounded, forbidden schema.ActionSet
}

// NewEnvelope reads the card's lists of actions.
func NewEnvelope(card *schema.Card) Envelope {
	return Envelope{schema.NewActionSet(card.Autonomy.BoundedActions), schema.NewActionSet(card.Autonomy.ForbiddenActions)}
}

// Bounded reports whether the agent may take the action without escalation.
func (e Envelope) Bounded(action string) bool { return e.bounded.Allows(action) }

// Forbidden reports whether the agent may never take the action.
func (e Envelope) Forbidden(action string) bool { return e.forbidden.Touches(action) }

// permits reports whether bounded_actions lists an action (AAP section 4.5): its name or, where
// nothing is executed, its type. Section 4.9 lists "recommend", and section 5.8 shows a
// recommendation with another name as bounded by that entry. Appendix B compares the entries
// with action.type as well. "execute" counts as a name only: as a type it would permit
// everything.
func (c *Compiled) permits(action *schema.Action) bool {
	return c.envelope.Bounded(action.Name) || action.Type != schema.ActionExecute && c.envelope.bounded.Has(string(action.Type))
}

func newTrigger(t schema.Trigger) trigger {
	expr, err := condition.Parse(t.Condition)
	say := func(text string) string { return fmt.Sprintf("trigger `%s` %s", t.Condition, text) }
	compiled := trigger{
		action:      t.Action,
		expr:        expr,
		problem:     err,
		missed:      say("matches, but the trace does not escalate"),
		timedOut:    say("matches; its escalation timed out"),
		logged:      say("matches"),
		denied:      say("denies this action, which was executed all the same"),
		misreported: say("matches, and is reported as not matched"),
		unconfirmed: say("is reported as matched, which this trace does not show"),
		misobserved: say("is reported with a value that this trace does not have"),
	}
	if err != nil {
		compiled.unparsed = say("cannot be evaluated: " + err.Error())
	}
	return compiled
}

// conditionPointer returns the place of a trigger's condition in the card.
func (c *Compiled) conditionPointer(i int) string {
	autonomy, _ := c.Card.Shape.Blocks()
	return fmt.Sprintf("/%s/escalation_triggers/%d/condition", autonomy, i)
}

// newValueLimit returns nil where the card sets no limit.
func newValueLimit(m schema.MaxValue) *valueLimit {
	if !m.Present {
		return nil
	}
	amount := m.Digits
	limit := &valueLimit{
		priced:   mustParse("transaction_value != null or purchase_value != null or amount != null"),
		exceeded: mustParse("transaction_value > " + amount + " or purchase_value > " + amount + " or amount > " + amount),
		amount:   amount,
	}
	if m.Currency != "" {
		other := func(name string) string { return " and currency != " + condition.Quote(name) }
		limit.foreign = mustParse("currency" + other(m.Currency) + other(strings.ToUpper(m.Currency)) + other(strings.ToLower(m.Currency)))
		limit.amount += " " + m.Currency
	}
	return limit
}

// mustParse compiles a condition that Plumbline itself generates.
func mustParse(expression string) *condition.Expr {
	expr, err := condition.Parse(expression)
	if err != nil {
		panic(fmt.Sprintf("aap: own condition %q: %v", expression, err))
	}
	return expr
}

// severities grades violations (AAP section 7.5) and findings.
var severities = map[string]schema.Severity{
	schema.ForbiddenAction:  schema.SeverityCritical,
	schema.CardMismatch:     schema.SeverityCritical,
	schema.UnboundedAction:  schema.SeverityHigh,
	schema.MissedEscalation: schema.SeverityHigh,
	schema.CardExpired:      schema.SeverityHigh,
	schema.UndeclaredValue:  schema.SeverityMedium,

	schema.AgentMismatch:           schema.SeverityCritical,
	schema.BadSignature:            schema.SeverityCritical,
	schema.CardRevoked:             schema.SeverityCritical,
	schema.DeniedButActed:          schema.SeverityCritical,
	schema.ValueLimitExceeded:      schema.SeverityHigh,
	schema.ValueCurrencyMismatch:   schema.SeverityHigh,
	schema.ApprovalConditionBroken: schema.SeverityHigh,
	schema.AdvisoryExecuted:        schema.SeverityHigh,
	schema.TriggerMisreported:      schema.SeverityHigh,
	schema.AmbiguousField:          schema.SeverityHigh,
	schema.Backdated:               schema.SeverityHigh,
	schema.SelfInstruction:         schema.SeverityHigh,
	schema.SelfValidation:          schema.SeverityHigh,
	schema.RelayedInstruction:      schema.SeverityHigh,
	schema.IntentEscalation:        schema.SeverityHigh,
	schema.UngroundedClaim:         schema.SeverityHigh,
	schema.InlineToolResult:        schema.SeverityHigh,
	schema.CategoryEvasion:         schema.SeverityMedium,
	schema.CategoryMismatch:        schema.SeverityMedium,
	schema.CardSuperseded:          schema.SeverityMedium,
	schema.TimeImplausible:         schema.SeverityMedium,
	schema.MissingSignature:        schema.SeverityMedium,
}

// recommend derives the recommendation from the remarks. Two warnings alone do not demand a
// review, near_boundary and low_behavioral_similarity: neither says that a rule was broken.
func recommend(v *schema.Verdict) schema.Recommendation {
	if len(v.Violations) > 0 {
		return schema.Deny
	}
	for i := range v.Findings {
		if v.Findings[i].Severity == schema.SeverityCritical {
			return schema.Deny
		}
	}
	if len(v.Findings) > 0 {
		return schema.Review
	}
	for i := range v.Warnings {
		switch v.Warnings[i].Type {
		case schema.WarnLowBehavioralSimilarity, schema.WarnNearBoundary:
		default:
			return schema.Review
		}
	}
	return schema.Proceed
}
