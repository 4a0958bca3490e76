package aap

import (
	"fmt"
	"slices"

	"github.com/plumbline/plumbline/aap/condition"
	"github.com/plumbline/plumbline/schema"
)

// maxApprovalConditions is how many conditions of one approval are checked.
const maxApprovalConditions = 64

// checkAction finds actions that contradict the principal or the card, and compares the trace's
// category with the card's lists.
func (j *Judge) checkAction() {
	t, action, card := j.trace, &j.trace.Action, j.card
	executed := action.Type == schema.ActionExecute
	if executed && t.Escalation.Reports(schema.EscalationDenied) {
		j.finding(schema.DeniedButActed, "action.type", "the action was executed although its escalation was denied")
	}
	if executed && card.Card.Principal.Relationship == schema.RelationshipAdvisory && !t.Escalation.Reports(schema.EscalationApproved) {
		j.finding(schema.AdvisoryExecuted, "action.type", "an agent whose relationship is advisory executed an action that nobody approved")
	}

	forbidden := card.envelope.Forbidden(action.Name)
	// An agent that leaves an action to its principal, or refuses it, has done what section 4.5
	// demands of an action that is not bounded.
	deferred := t.Escalation.Required || action.Type == schema.ActionEscalate || action.Type == schema.ActionDeny
	switch {
	case forbidden && action.Category == schema.CategoryBounded:
		j.finding(schema.CategoryMismatch, "action.category",
			j.texts.say("the trace calls ").quoted(action.Name).and(" a permitted action, but the card lists it in forbidden_actions").done())
	case !forbidden && action.Category == schema.CategoryForbidden && card.envelope.Bounded(action.Name):
		j.finding(schema.CategoryMismatch, "action.category",
			j.texts.say("the trace calls ").quoted(action.Name).and(" forbidden, but the card lists it in bounded_actions").done())
	case !forbidden && action.Category != schema.CategoryBounded && !j.triggered && !deferred && !card.permits(action):
		j.finding(schema.CategoryEvasion, "action.category",
			j.texts.say("the card lists ").quoted(action.Name).and(" neither in bounded_actions nor in forbidden_actions, the trace does not call it permitted, it was not escalated, and no trigger matches").done())
	}
}

// checkValueLimit compares the value of an executed action with max_autonomous_value (AAP
// section 4.5). An escalation lifts the limit. An action that was recommended, refused or left
// to the principal moves no value.
func (j *Judge) checkValueLimit() {
	limit := j.card.limit
	if limit == nil || j.trace.Action.Type != schema.ActionExecute || j.trace.Escalation.Required || !j.conditions.Eval(limit.priced) {
		return
	}
	if limit.foreign != nil && j.conditions.Eval(limit.foreign) {
		j.finding(schema.ValueCurrencyMismatch, "currency", "the value is in another currency than max_autonomous_value, "+limit.amount)
		return
	}
	if j.conditions.Eval(limit.exceeded) {
		j.finding(schema.ValueLimitExceeded, "", "the value is above max_autonomous_value, "+limit.amount+", and was not escalated")
	}
}

// checkApproval finds conditions of an approval that this trace itself breaks.
func (j *Judge) checkApproval() {
	t := j.trace
	response := &t.Escalation.Response
	if len(response.Conditions) == 0 || t.Escalation.Reports(schema.EscalationDenied) || t.Action.Type == schema.ActionEscalate || t.Action.Type == schema.ActionDeny {
		return
	}
	j.conditions.Quantifier = condition.All
	for i, text := range response.Conditions[:min(len(response.Conditions), maxApprovalConditions)] {
		field := fmt.Sprintf("escalation.principal_response.conditions[%d]", i)
		expr, err := condition.Parse(text)
		switch {
		case err != nil:
			j.warning(schema.WarnUnparsedCondition, field, fmt.Sprintf("condition of the approval cannot be evaluated: %v", err))
		case !j.conditions.Eval(expr):
			j.finding(schema.ApprovalConditionBroken, field, fmt.Sprintf("the approval asks for `%s`, which this trace breaks", expr))
		}
	}
	j.conditions.Quantifier = condition.Any
	if more := len(response.Conditions) - maxApprovalConditions; more > 0 {
		j.warning(schema.WarnUnparsedCondition, "escalation.principal_response.conditions",
			fmt.Sprintf("%d more conditions of the approval were not evaluated", more))
	}
}

// Broken returns the indexes of the conditions of an approval (AAP section 5.6) that a trace
// breaks. A field that the trace lacks breaks no condition. A nil expression means that the
// condition cannot be evaluated.
func Broken(conditions []*condition.Expr, t *schema.Trace) (broken []int) {
	var lookup fields
	lookup.reset(t)
	evaluator := condition.Evaluator{Source: &lookup, Quantifier: condition.All}
	evaluator.Reset()
	for i, expr := range conditions {
		if expr != nil && !evaluator.Eval(expr) {
			broken = append(broken, i)
		}
	}
	return broken
}

// Evaluation is the outcome of one condition on one trace (AAP section 4.6).
type Evaluation struct {
	Matched      bool     `json:"matched"`
	Absent       bool     `json:"absent"`                 // a field is absent from the whole trace
	Ambiguous    []string `json:"ambiguous,omitempty"`    // fields that hold different values in different places
	Uncomparable []string `json:"uncomparable,omitempty"` // fields whose type does not fit the comparison
	Unsearched   []string `json:"unsearched,omitempty"`   // fields that patterns searched in part, without a result
}

// Evaluate evaluates a condition on a trace as Verify evaluates a trigger of a card.
func Evaluate(expr *condition.Expr, t *schema.Trace) Evaluation {
	var lookup fields
	lookup.reset(t)
	evaluator := condition.Evaluator{Source: &lookup}
	evaluator.Reset()
	matched := evaluator.Eval(expr)
	return Evaluation{
		Matched:      matched,
		Absent:       evaluator.Absent,
		Ambiguous:    slices.Clone(evaluator.Ambiguous),
		Uncomparable: slices.Clone(evaluator.Uncomparable),
		Unsearched:   slices.Clone(evaluator.Unsearched),
	}
}
