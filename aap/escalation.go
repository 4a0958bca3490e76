package aap

import (
	"fmt"

	"github.com/plumbline/plumbline/schema"
)

// checkEscalation is check 2 of AAP section 7.3: every trigger in order.
func (j *Judge) checkEscalation() {
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
	claim := j.claim(trigger.condition)
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

// claim is what a trace says about a trigger; contradictory traces say both.
type claim struct {
	matched, unmatched bool
}

func (j *Judge) claim(condition string) claim {
	var c claim
	for i := range j.trace.Escalation.TriggersChecked {
		check := &j.trace.Escalation.TriggersChecked[i]
		if sameButSpace(check.Trigger, condition) {
			c.matched = c.matched || check.Matched
			c.unmatched = c.unmatched || !check.Matched
		}
	}
	return c
}

// sameButSpace compares two expressions without their white space.
func sameButSpace(a, b string) bool {
	for {
		a, b = trimSpace(a), trimSpace(b)
		if a == "" || b == "" {
			return a == b
		}
		if a[0] != b[0] {
			return false
		}
		a, b = a[1:], b[1:]
	}
}

func trimSpace(s string) string {
	for s != "" && (s[0] == ' ' || s[0] == '\t' || s[0] == '\n' || s[0] == '\r') {
		s = s[1:]
	}
	return s
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
		j.finding(schema.AmbiguousField, name, fmt.Sprintf("field %q holds different values in different places", name))
	}
	for _, name := range j.conditions.Uncomparable {
		j.warning(schema.WarnUncomparable, name, fmt.Sprintf("field %q cannot be compared as a condition asks", name))
	}
	if j.fields.exhausted {
		j.warning(schema.WarnUncomparable, "", "the conditions look up more than a trace of this size allows; some were not evaluated")
	}
}
