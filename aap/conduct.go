package aap

import (
	"fmt"
	"strings"

	"github.com/plumbline/plumbline/aap/condition"
	"github.com/plumbline/plumbline/schema"
)

// maxApprovalConditions is how many conditions of one approval are checked.
const maxApprovalConditions = 64

// checkAction finds actions that contradict the card or the principal.
func (j *Judge) checkAction() {
	t, card := j.trace, j.card
	executed := t.Action.Type == schema.ActionExecute
	if executed && denied(&t.Escalation) {
		j.finding(schema.DeniedButActed, "action.type", "the action was executed although its escalation was denied")
	}
	if executed && card.Card.Principal.Relationship == schema.RelationshipAdvisory && !approved(&t.Escalation) {
		j.finding(schema.AdvisoryExecuted, "action.type", "an agent whose relationship is advisory executed an action that nobody approved")
	}
	j.checkCategory()
}

// checkCategory compares the trace's category with the card's lists.
func (j *Judge) checkCategory() {
	action, card := &j.trace.Action, j.card
	forbidden := card.forbidden.touch(action.Name)
	switch {
	case forbidden && action.Category == schema.CategoryBounded:
		j.finding(schema.CategoryMismatch, "action.category",
			j.texts.say("").quoted(action.Name).and(" is called bounded, and is one of forbidden_actions").done())
	case !forbidden && action.Category == schema.CategoryForbidden && card.bounded.allow(action.Name):
		j.finding(schema.CategoryMismatch, "action.category",
			j.texts.say("").quoted(action.Name).and(" is called forbidden, and is one of bounded_actions").done())
	case !forbidden && action.Category != schema.CategoryBounded && !j.triggered && !j.yielded() && !card.permits(action):
		j.finding(schema.CategoryEvasion, "action.category",
			j.texts.say("").quoted(action.Name).and(" is neither bounded nor forbidden, is not called bounded, was not escalated, and no trigger matches").done())
	}
}

// yielded reports whether the agent left the action to its principal or refused it. Section 4.5
// demands no more for an action that is not bounded.
func (j *Judge) yielded() bool {
	kind := j.trace.Action.Type
	return j.trace.Escalation.Required || kind == schema.ActionEscalate || kind == schema.ActionDeny
}

// approved reports whether the principal approved.
func approved(e *schema.Escalation) bool {
	return e.Status == schema.EscalationApproved || strings.EqualFold(e.Response.Decision, string(schema.EscalationApproved))
}

// denied reports whether the principal denied.
func denied(e *schema.Escalation) bool {
	return e.Status == schema.EscalationDenied || strings.EqualFold(e.Response.Decision, string(schema.EscalationDenied))
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
	if len(response.Conditions) == 0 || denied(&t.Escalation) || t.Action.Type == schema.ActionEscalate || t.Action.Type == schema.ActionDeny {
		return
	}
	j.conditions.Quantifier = condition.All
	for i, text := range response.Conditions[:min(len(response.Conditions), maxApprovalConditions)] {
		j.checkApprovalCondition(i, text)
	}
	j.conditions.Quantifier = condition.Any
	if more := len(response.Conditions) - maxApprovalConditions; more > 0 {
		j.warning(schema.WarnUnparsedCondition, "escalation.principal_response.conditions",
			fmt.Sprintf("%d more conditions of the approval were not evaluated", more))
	}
}

func (j *Judge) checkApprovalCondition(i int, text string) {
	field := fmt.Sprintf("escalation.principal_response.conditions[%d]", i)
	expr, err := condition.Parse(text)
	if err != nil {
		j.warning(schema.WarnUnparsedCondition, field, fmt.Sprintf("condition of the approval cannot be evaluated: %v", err))
		return
	}
	if !j.conditions.Eval(expr) {
		j.finding(schema.ApprovalConditionBroken, field, fmt.Sprintf("the approval asks for `%s`, which this trace breaks", expr))
	}
}
