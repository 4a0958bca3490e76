package aap

import (
	"github.com/plumbline/plumbline/schema"
)

// checkEscalation is check 2 of AAP section 7.3: every trigger in order.
func (j *Judge) checkEscalation() {
	j.claims = j.card.claims.read(j.claims, j.trace.Escalation.TriggersChecked)
	for i := range j.card.triggers {
		trigger := &j.card.triggers[i]
		if j.matches(i, trigger) {
			j.triggered = true
			j.checkTrigger(trigger)
		}
	}
}

// matches tells whether a trigger matches: by our evaluation or by the trace's
// own claim. The two should agree.
func (j *Judge) matches(i int, trigger *trigger) bool {
	claim := j.claims[trigger.claim]
	if trigger.expr == nil {
		j.warning(schema.WarnUnparsedCondition, "", trigger.unparsed)
		return claim.matched
	}
	evaluated := j.conditions.Eval(trigger.expr)
	if j.conditions.Absent {
		j.verdict.Metadata.AbsentTriggers = append(j.verdict.Metadata.AbsentTriggers, i)
	}
	if evaluated && claim.unmatched || !evaluated && claim.matched {
		j.finding(schema.TriggerMisreported, "escalation.triggers_checked", trigger.misreported)
	}
	return evaluated || claim.matched
}

// checkTrigger draws the consequences of a trigger that matches.
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

// reportFields reports what evaluating conditions showed about fields.
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
