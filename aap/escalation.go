package aap

import (
	"github.com/plumbline/plumbline/aap/condition"
	"github.com/plumbline/plumbline/schema"
)

// checkEscalation is check 2 of AAP section 7.3: every trigger in order.
func (j *Judge) checkEscalation() {
	j.claims.read(&j.card.claims, j.trace.Escalation.TriggersChecked)
	for i := range j.card.triggers {
		trigger := &j.card.triggers[i]
		if j.matches(i, trigger) {
			j.triggered = true
			j.checkTrigger(trigger)
		}
	}
}

// matches reports whether a trigger matches. The judge evaluates the condition. Where the trace
// has nothing to evaluate, its own report counts. A reported match that the trace does not show
// is excess caution and gives only a warning.
func (j *Judge) matches(i int, trigger *trigger) bool {
	claim := j.claims.on[trigger.claim]
	if trigger.expr == nil {
		j.warning(schema.WarnUnparsedCondition, "", trigger.unparsed)
		return claim.matched
	}
	evaluated := j.conditions.Eval(trigger.expr)
	undecided := j.conditions.Undecided || j.fields.exhausted
	if j.conditions.Absent {
		j.verdict.Metadata.AbsentTriggers = append(j.verdict.Metadata.AbsentTriggers, i)
	}
	switch {
	case evaluated && claim.unmatched:
		j.finding(schema.TriggerMisreported, "escalation.triggers_checked", trigger.misreported)
	case !evaluated && claim.matched:
		j.warning(schema.WarnUnconfirmedTrigger, "escalation.triggers_checked", trigger.unconfirmed)
		return undecided
	}
	return evaluated
}

// checkTrigger reports the consequences of a trigger that matches.
func (j *Judge) checkTrigger(trigger *trigger) {
	escalation := &j.trace.Escalation
	if trigger.action == schema.TriggerLog {
		j.warning(schema.WarnLogTrigger, "", trigger.logged)
		return
	}
	if trigger.action == schema.TriggerDeny && j.trace.Action.Type == schema.ActionExecute {
		j.finding(schema.DeniedButActed, "action.type", trigger.denied)
	}
	switch {
	case !escalation.Required:
		j.violation(schema.MissedEscalation, "escalation.required", trigger.missed)
	case escalation.Status == schema.EscalationTimeout:
		j.warning(schema.WarnEscalationTimeout, "escalation.escalation_status", trigger.timedOut)
	}
}

// checkObservations compares the values that the trace claims to have observed for the triggers
// with the values it has. It runs after all other conditions: the claims of a trace can be long
// and must not use up the look-up budget of the conditions.
func (j *Judge) checkObservations() {
	for i := range j.card.triggers {
		trigger := &j.card.triggers[i]
		if at := j.falseObservation(trigger); at >= 0 {
			field := j.texts.say("escalation.triggers_checked[").number(at).and("].value_observed").done()
			j.finding(schema.TriggerMisreported, field, trigger.misobserved)
		}
	}
}

// falseObservation returns the index in triggers_checked of an observed value that the trace
// does not have, or -1 where there is none.
func (j *Judge) falseObservation(trigger *trigger) int {
	if trigger.expr == nil {
		return -1
	}
	for at := j.claims.on[trigger.claim].observed; at > 0; at = j.claims.observed[at-1].next {
		seen := &j.claims.observed[at-1]
		if j.conditions.Refutes(trigger.expr, condition.JSON(seen.value)) {
			return seen.check
		}
	}
	return -1
}

// reportFields reports the problems with fields that the evaluation of conditions found.
func (j *Judge) reportFields() {
	for _, name := range j.conditions.Ambiguous {
		j.finding(schema.AmbiguousField, name, j.texts.say("field ").quoted(name).and(" holds different values in different places").done())
	}
	for _, name := range j.conditions.Uncomparable {
		j.warning(schema.WarnUncomparable, name, j.texts.say("field ").quoted(name).and(" cannot be compared as a condition asks").done())
	}
	for _, name := range j.conditions.Unsearched {
		j.warning(schema.WarnUncomparable, name,
			j.texts.say("field ").quoted(name).and(" is longer than the patterns on this trace may look at; in the first part they find nothing").done())
	}
	if j.fields.exhausted {
		j.warning(schema.WarnUncomparable, "", "the conditions look up more than a trace of this size allows; some were not evaluated")
	}
}
