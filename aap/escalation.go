package aap

import (
	"slices"
	"strings"

	"github.com/plumbline/plumbline/aap/condition"
	"github.com/plumbline/plumbline/schema"
)

// checkEscalation is check 2 of AAP section 7.3: every trigger in order.
func (j *Judge) checkEscalation() {
	j.claims.read(&j.card.claims, j.trace.Escalation.TriggersChecked)
	for i := range j.card.triggers {
		trigger := &j.card.triggers[i]
		if !j.matches(i, trigger) {
			continue
		}
		j.triggered = true
		if trigger.action == schema.TriggerLog {
			j.warning(schema.WarnLogTrigger, "", trigger.logged)
			continue
		}
		if trigger.action == schema.TriggerDeny && j.trace.Action.Type == schema.ActionExecute {
			j.finding(schema.DeniedButActed, "action.type", trigger.denied)
		}
		switch {
		case !j.trace.Escalation.Required:
			j.violation(schema.MissedEscalation, "escalation.required", trigger.missed)
		case j.trace.Escalation.Status == schema.EscalationTimeout:
			j.warning(schema.WarnEscalationTimeout, "escalation.escalation_status", trigger.timedOut)
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

// checkObservations compares the values that the trace claims to have observed for the triggers
// with the values it has. It runs after all other conditions: the claims of a trace can be long
// and must not use up the look-up budget of the conditions.
func (j *Judge) checkObservations() {
	for i := range j.card.triggers {
		trigger := &j.card.triggers[i]
		if trigger.expr == nil {
			continue
		}
		for at := j.claims.on[trigger.claim].observed; at > 0; at = j.claims.observed[at-1].next {
			seen := &j.claims.observed[at-1]
			if j.conditions.Refutes(trigger.expr, condition.JSON(seen.value)) {
				field := j.texts.say("escalation.triggers_checked[").number(seen.check).and("].value_observed").done()
				j.finding(schema.TriggerMisreported, field, trigger.misobserved)
				break
			}
		}
	}
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

// claim is the statement of a trace about a trigger; contradictory traces state both.
type claim struct {
	matched, unmatched bool
	observed           int // from 1: its first observation among those of the trace; 0: none
}

// observation is a value that a trace claims to have observed for a trigger.
type observation struct {
	value []byte // JSON
	check int    // index in triggers_checked
	next  int    // from 1: the next observation for the same trigger; 0: none
}

// claims are the claims of one trace about the triggers of its card.
type claims struct {
	on       []claim // by their places in the card's index
	observed []observation
}

// claimIndex finds the claims about a card's triggers by their conditions, ignoring
// insignificant white space. The cost for a trace depends on the length of its claims, not on
// the card.
type claimIndex struct {
	places  map[string]int // by squeezed condition
	longest int            // of these conditions, in bytes
}

// add returns the place of the claims about a condition.
func (x *claimIndex) add(condition string) int {
	squeezed, _ := squeeze(nil, condition, len(condition))
	place, known := x.places[string(squeezed)]
	if known {
		return place
	}
	if x.places == nil {
		x.places = make(map[string]int)
	}
	place = len(x.places)
	x.places[string(squeezed)] = place
	x.longest = max(x.longest, len(squeezed))
	return place
}

// read groups the claims of a trace by the conditions of the index; it ignores other claims.
func (c *claims) read(index *claimIndex, checks []schema.TriggerCheck) {
	c.on, c.observed = slices.Grow(c.on[:0], len(index.places))[:len(index.places)], c.observed[:0]
	clear(c.on)
	if len(c.on) == 0 {
		return
	}
	var room [128]byte
	for i := range checks {
		check := &checks[i]
		squeezed, fits := squeeze(room[:0], check.Trigger, index.longest)
		if !fits {
			continue
		}
		place, known := index.places[string(squeezed)]
		if !known {
			continue
		}
		on := &c.on[place]
		on.matched = on.matched || check.Matched
		on.unmatched = on.unmatched || !check.Matched
		if len(check.ValueObserved) > 0 {
			c.observed = append(c.observed, observation{check.ValueObserved, i, on.observed})
			on.observed = len(c.observed)
		}
	}
}

// squeeze appends a condition without insignificant white space: one space stays between two
// words, and quoted texts stay unchanged. fits is false where the result is longer than most.
func squeeze(dst []byte, s string, most int) (squeezed []byte, fits bool) {
	quote, escaped, space := byte(0), false, false
	for i := range len(s) {
		c := s[i]
		if quote == 0 && (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
			space = true
			continue
		}
		if space && len(dst) > 0 && inWord(dst[len(dst)-1]) && inWord(c) {
			dst = append(dst, ' ')
		}
		space = false
		if dst = append(dst, c); len(dst) > most {
			return nil, false
		}
		switch {
		case escaped:
			escaped = false
		case c == '\\':
			escaped = true
		case c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		}
	}
	return dst, true
}

// inWord reports whether a byte can be part of a word or a number of a condition.
func inWord(c byte) bool { return strings.IndexByte(`(<>=!,"')`, c) < 0 }
