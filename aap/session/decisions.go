package session

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/aap/condition"
	"github.com/plumbline/plumbline/schema"
)

// decision is a decision of the principal that is still in effect.
type decision struct {
	ID         string    `json:"id,omitempty"` // of the escalation
	Action     string    `json:"action"`
	TraceID    string    `json:"trace_id"` // of the trace that reports it
	Denied     bool      `json:"denied,omitempty"`
	Subject    subject   `json:"subject,omitzero"`   // of a denial: the subject of the action
	Told       bool      `json:"told,omitempty"`     // an execution with other amounts was already reported
	Executed   bool      `json:"executed,omitempty"` // of an approval: the trace that reports it is itself the execution
	Conditions []string  `json:"conditions,omitempty"`
	At         time.Time `json:"at,omitzero"`    // of the response, if known
	Since      time.Time `json:"since,omitzero"` // of an approval: the earliest date under its id; zero if unknown
	Place      stamp     `json:"place,omitzero"` // of the trace

	compiled []*condition.Expr
}

// decisions holds the principal's decisions in effect, the newest last.
type decisions struct {
	standing []decision
	lost     int64 // decisions that were dropped
	unread   int64 // conditions that cannot be evaluated
}

// decision checks an execution against the principal's earlier decisions, and records the
// decision that the trace reports.
func (j *Judge) decision(t *schema.Trace, s stamp) {
	e := &t.Escalation
	if t.Action.Type == schema.ActionExecute && !denied(e) {
		j.execution(t, s)
	}
	if approved(e) {
		j.clear(t, s)
	}
	if denied(e) || approved(e) {
		j.decisions.decide(t, s)
	}
}

// execution checks an execution against the decision in effect for it: the decision on its own
// escalation, or else the newest on its action. A decision that a trace of the same place
// reports is not earlier.
func (j *Judge) execution(t *schema.Trace, s stamp) {
	d := j.decisions.of(t, s)
	switch {
	case d == nil || !d.Place.before(s):
	case d.Denied && !approved(&t.Escalation):
		j.deniedExecution(t, d, s)
	case !d.Denied && len(t.Escalation.Response.Conditions) == 0 && (t.Escalation.EscalationID == "" || t.Escalation.EscalationID == d.ID):
		j.conditions(t, d) // the trace's own verdict covers conditions of its own
	}
}

// of returns the decision in effect for an execution, nil where there is none. A denial counts
// only if it came before the execution. Among decisions of the same place it prefers an
// approval, since none of them is the newest.
func (ds *decisions) of(t *schema.Trace, s stamp) *decision {
	var byAction *decision
	for i := range slices.Backward(ds.standing) {
		d := &ds.standing[i]
		if d.Denied && !d.Place.before(s) {
			continue
		}
		if d.ID != "" && d.ID == t.Escalation.EscalationID {
			return d
		}
		if d.Action == t.Action.Name && (byAction == nil || byAction.Denied && !d.Denied && !d.Place.before(byAction.Place)) {
			byAction = d
		}
	}
	return byAction
}

// under returns the decision under the id of an escalation, nil where there is none.
func (ds *decisions) under(id string) *decision {
	if at := slices.IndexFunc(ds.standing, func(d decision) bool { return d.ID != "" && d.ID == id }); at >= 0 {
		return &ds.standing[at]
	}
	return nil
}

// approve reports whether an approval of the action is in effect, under any id.
func (ds *decisions) approve(action string) bool {
	return slices.ContainsFunc(ds.standing, func(d decision) bool { return !d.Denied && d.Action == action })
}

// approvedBeside reports whether an approval of the action is in effect that was reported by a
// trace of this place or of a later one.
func (ds *decisions) approvedBeside(action string, s stamp) bool {
	return slices.ContainsFunc(ds.standing, func(d decision) bool { return !d.Denied && d.Action == action && !d.Place.before(s) })
}

// deniedExecution reports the execution of a denied action, and once an execution that differs
// only in amounts. The same action on another subject is not reported.
func (j *Judge) deniedExecution(t *schema.Trace, d *decision, s stamp) {
	about, named := subjectOf(t), d.ID != "" && d.ID == t.Escalation.EscalationID
	of := ""
	if named {
		of = d.ID
	}
	switch {
	case named || d.Subject == about:
		j.suspect(t, of, s, schema.SeverityCritical,
			fmt.Sprintf("%q is executed after its denial in trace %q", t.Action.Name, d.TraceID))
	case d.Subject.Matter == about.Matter && !d.Told:
		d.Told = true
		j.suspect(t, of, s, schema.SeverityMedium,
			fmt.Sprintf("%q is executed with other amounts after its denial in trace %q", t.Action.Name, d.TraceID))
	}
}

// conditions reports the conditions of an approval that an execution breaks. If the trace with
// the approval is itself an execution, the approval may not apply to another execution, so the
// severity is lower.
func (j *Judge) conditions(t *schema.Trace, d *decision) {
	severity := schema.SeverityHigh
	if d.Executed && (d.ID == "" || d.ID != t.Escalation.EscalationID) {
		severity = schema.SeverityMedium
	}
	for _, i := range aap.Broken(d.compiled, t) {
		j.find(schema.ApprovalConditionBroken, severity, t.TraceID, fmt.Sprintf("escalation.principal_response.conditions[%d]", i),
			fmt.Sprintf("the approval in trace %q asks for `%s`, which this trace breaks", d.TraceID, d.compiled[i]))
	}
}

// decide replaces the decision on the same matter. An approval that only repeats an earlier one
// does not end the earlier one's conditions.
func (ds *decisions) decide(t *schema.Trace, s stamp) {
	e := &t.Escalation
	d := decision{ID: strings.Clone(e.EscalationID), Action: strings.Clone(t.Action.Name), TraceID: strings.Clone(t.TraceID),
		Denied: denied(e), Executed: t.Action.Type == schema.ActionExecute, At: e.Response.Timestamp, Place: s}
	if d.Denied {
		d.Subject = subjectOf(t)
	} else {
		d.Since = d.At
		if old := ds.under(d.ID); old != nil && !old.Denied && old.Since.Before(d.Since) {
			d.Since = old.Since
		}
		for _, text := range e.Response.Conditions {
			d.Conditions = append(d.Conditions, strings.Clone(text))
		}
	}
	if slices.ContainsFunc(ds.standing, func(old decision) bool { return d.repeats(&old) || d.yields(&old) }) {
		return
	}
	for i := range ds.standing { // the denial of the same subject dates from the first time
		if old := &ds.standing[i]; d.Denied && old.Action == d.Action && old.Subject == d.Subject && old.Place.before(d.Place) {
			d.Place = old.Place
		}
	}
	ds.standing = slices.DeleteFunc(ds.standing, func(old decision) bool { return d.sameMatter(&old) })
	ds.add(d)
}

// sameMatter reports whether two decisions are about the same escalation or, where one of them
// has no id, the same action.
func (d *decision) sameMatter(old *decision) bool {
	if d.ID != "" && old.ID != "" {
		return d.ID == old.ID
	}
	return d.Action == old.Action
}

// repeats reports whether an approval without conditions repeats an earlier one with conditions
// and is not dated later.
func (d *decision) repeats(old *decision) bool {
	return d.sameMatter(old) && !d.Denied && len(d.Conditions) == 0 && len(old.Conditions) > 0 && !d.At.After(old.At)
}

// yields reports whether a denial is certainly not later than an approval on the same matter.
// Of two answers of the same place neither is later, so the approval stays in effect and nobody
// is accused.
func (d *decision) yields(old *decision) bool {
	return d.sameMatter(old) && d.Denied && !old.Denied && !old.Place.before(d.Place)
}

// add puts a decision into effect.
func (ds *decisions) add(d decision) {
	if len(ds.standing) == maxDecisions {
		ds.standing = slices.Delete(ds.standing, 0, 1)
		ds.lost++
	}
	if more := len(d.Conditions) - maxConditions; more > 0 {
		ds.unread += int64(more)
		d.Conditions = d.Conditions[:maxConditions]
	}
	d.compiled = make([]*condition.Expr, len(d.Conditions))
	for i, text := range d.Conditions {
		expr, err := condition.Parse(text)
		if err != nil {
			ds.unread++
		}
		d.compiled[i] = expr
	}
	ds.standing = append(ds.standing, d)
}
