package session

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/schema"
)

// openEscalation is a required escalation without an answer so far.
type openEscalation struct {
	ID     string `json:"id,omitempty"`
	Action string `json:"action"`
	subject
	TraceID  string `json:"trace_id"`
	At       stamp  `json:"at,omitzero"`        // of the first trace that requires it
	Executed bool   `json:"executed,omitempty"` // the action was executed nevertheless
	Acts     []act  `json:"acts,omitempty"`     // executions that may have come before the answer
	Reported bool   `json:"reported,omitempty"` // in the verdict on an earlier part
}

// answered is an escalation with an answer.
type answered struct {
	ID     string `json:"id,omitempty"`
	Action string `json:"action"`
	At     stamp  `json:"at"` // of the trace that reports the answer
}

// escalations tracks each escalation from the trace that requires it to the trace that answers
// it.
type escalations struct {
	open    []openEscalation
	closed  []answered // the newest
	accused []accused
	lost    int64 // escalations and executions that were dropped
}

// escalation processes the escalation of a trace.
func (j *Judge) escalation(t *schema.Trace, s stamp) {
	e, es := &t.Escalation, &j.escalations
	executed := t.Action.Type == schema.ActionExecute
	switch {
	case answers(e):
		j.settle(t, s)
		return
	case !e.Required && (!executed || len(es.open) == 0):
		return
	}
	about := subjectOf(t)
	if e.Required {
		if es.settled(t, s) {
			return
		}
		es.ask(t, about, s)
	}
	if executed {
		j.act(t, about, s)
	}
}

// ask opens the escalation that a trace requires, unless it is already open.
func (es *escalations) ask(t *schema.Trace, about subject, s stamp) {
	at := slices.IndexFunc(es.open, func(o openEscalation) bool { return o.same(t) })
	switch {
	case at >= 0:
		if o := &es.open[at]; !o.At.before(s) {
			o.TraceID = min(o.TraceID, strings.Clone(t.TraceID)) // of the same time: independent of the order of arrival
		}
	case len(es.open) == maxOpen:
		es.lost++
	default:
		es.open = append(es.open, openEscalation{ID: strings.Clone(t.Escalation.EscalationID), Action: strings.Clone(t.Action.Name),
			subject: about, TraceID: strings.Clone(t.TraceID), At: s})
	}
}

// settle closes the escalations that a trace answers, and judges the executions before the
// answer.
func (j *Judge) settle(t *schema.Trace, s stamp) {
	es, id := &j.escalations, strings.Clone(t.Escalation.EscalationID)
	es.forgive(t)
	closed := []answered{{id, strings.Clone(t.Action.Name), s}}
	es.open = slices.DeleteFunc(es.open, func(o openEscalation) bool {
		if !o.concerns(t) {
			return false
		}
		j.acted(&o, t, s)
		closed = append(closed, answered{cmp.Or(o.ID, id), o.Action, s})
		return true
	})
	for _, c := range closed {
		es.close(c)
	}
}

// close records that an escalation is answered. Executions of the same place are dropped:
// neither trace is later.
func (es *escalations) close(c answered) {
	for i := range es.open {
		o := &es.open[i]
		o.Acts = slices.DeleteFunc(o.Acts, func(a act) bool { return !a.At.before(c.At) && c.covers(a.ID, a.Action) })
	}
	if slices.Contains(es.closed, c) {
		return
	}
	if len(es.closed) == maxOpen {
		es.closed = slices.Delete(es.closed, 0, 1)
	}
	es.closed = append(es.closed, c)
}

// covers reports whether an answer may belong to a trace with that escalation id and action.
// The ids decide or, where one of the two has none, the actions.
func (c *answered) covers(id, action string) bool {
	if c.ID != "" && id != "" {
		return c.ID == id
	}
	return c.Action == action
}

// covered reports whether an answer covers the escalation or action of a trace at this place.
// The answer must be reported by a trace that is certainly not before this place.
func (es *escalations) covered(id, action string, s stamp) bool {
	return slices.ContainsFunc(es.closed, func(c answered) bool { return !c.At.before(s) && c.covers(id, action) })
}

// settled reports whether the escalation of a trace is already answered: by a trace of the same
// place, since neither of the two is later; or by an earlier trace under the same id, where
// this trace executes the action and only repeats the question.
func (es *escalations) settled(t *schema.Trace, s stamp) bool {
	id, action := t.Escalation.EscalationID, t.Action.Name
	if es.covered(id, action, s) {
		return true
	}
	return t.Action.Type == schema.ActionExecute && id != "" &&
		slices.ContainsFunc(es.closed, func(c answered) bool { return c.ID == id && c.Action == action })
}

// concerns reports whether a trace belongs to an escalation: by its id or, where one of the two
// has none, by the action.
func (o *openEscalation) concerns(t *schema.Trace) bool {
	if id := t.Escalation.EscalationID; o.ID != "" && id != "" {
		return o.ID == id
	}
	return o.Action == t.Action.Name
}

// executedBy reports whether an execution is the escalated action: under the same id, or the
// same action on the same matter.
func (o *openEscalation) executedBy(t *schema.Trace, about subject) bool {
	if id := t.Escalation.EscalationID; o.ID != "" && id != "" {
		return o.ID == id
	}
	return o.Action == t.Action.Name && o.Matter == about.Matter
}

// same reports whether a trace requires the open escalation again.
func (o *openEscalation) same(t *schema.Trace) bool {
	return o.ID == t.Escalation.EscalationID && (o.ID != "" || o.Action == t.Action.Name)
}

// unanswered reports the escalations that are open at the end of the session. It is graver if
// the action was executed nevertheless.
func (es *escalations) unanswered(f *findings) {
	for i := range es.open {
		o := &es.open[i]
		for _, a := range o.Acts {
			if a.Pending && !a.Reported {
				f.add(a.finding(o, ""))
			}
		}
		if o.Reported {
			continue
		}
		finding := schema.SessionFinding{Type: schema.EscalationUnanswered, Severity: schema.SeverityMedium,
			Description: fmt.Sprintf("%s is required, and the session reports no approval, denial or timeout of it", o.name()),
			TraceID:     o.TraceID, Field: "escalation.escalation_status"}
		if o.Executed {
			finding.Severity = schema.SeverityHigh
			finding.Description += ", but the action was executed"
		}
		f.add(finding)
	}
}

// reported returns an open escalation as the verdict on a last part has reported it.
func (o openEscalation) reported() openEscalation {
	o.Reported = true
	o.Acts = slices.Clone(o.Acts)
	for i := range o.Acts {
		o.Acts[i].Reported = o.Acts[i].Reported || o.Acts[i].Pending
	}
	return o
}

func (o *openEscalation) name() string {
	if o.ID == "" {
		return fmt.Sprintf("an escalation of %q", o.Action)
	}
	return fmt.Sprintf("escalation %q of %q", o.ID, o.Action)
}
