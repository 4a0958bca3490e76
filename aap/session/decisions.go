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

// decision is a principal's word that still stands.
type decision struct {
	ID         string    `json:"id,omitempty"` // of the escalation
	Action     string    `json:"action"`
	TraceID    string    `json:"trace_id"` // of the trace that reports it
	Denied     bool      `json:"denied,omitempty"`
	Subject    subject   `json:"subject,omitzero"`   // of a denial: what the action was about
	Told       bool      `json:"told,omitempty"`     // that something like it was executed
	Executed   bool      `json:"executed,omitempty"` // of an approval: the trace that reports it is the execution itself
	Conditions []string  `json:"conditions,omitempty"`
	At         time.Time `json:"at,omitzero"`    // of the response, where it says
	Since      time.Time `json:"since,omitzero"` // of an approval: the earliest date under its id; zero where that is not known
	Place      stamp     `json:"place,omitzero"` // of the trace

	compiled []*condition.Expr
}

// decisions follows what the principal decided, the newest last.
type decisions struct {
	standing []decision
	lost     int64 // that were not followed
	unread   int64 // conditions that cannot be evaluated
}

// decision checks an execution against what the principal decided before it, and
// notes what the trace says that the principal decided.
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

// execution checks one against the decision that stands for it: that on its own
// escalation, else the newest on its action. What a trace of the same place reports
// does not come before it.
func (j *Judge) execution(t *schema.Trace, s stamp) {
	d := j.decisions.of(t, s)
	switch {
	case d == nil || !d.Place.before(s):
	case d.Denied && !approved(&t.Escalation):
		j.deniedExecution(t, d, s)
	case !d.Denied && len(t.Escalation.Response.Conditions) == 0 && (t.Escalation.EscalationID == "" || t.Escalation.EscalationID == d.ID):
		j.conditions(t, d) // conditions of its own are the trace's own verdict's
	}
}

// of returns the decision that stands for an execution, nil where there is none: a
// denial only where it came before. Of decisions of one place it is an approval: none of
// them is the newest.
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

// approve reports whether an approval of an action stands, under whatever id.
func (ds *decisions) approve(action string) bool {
	return slices.ContainsFunc(ds.standing, func(d decision) bool { return !d.Denied && d.Action == action })
}

// approvedBeside reports whether an approval of an action stands that a trace of this
// place, or of a later one, reports.
func (ds *decisions) approvedBeside(action string, s stamp) bool {
	return slices.ContainsFunc(ds.standing, func(d decision) bool { return !d.Denied && d.Action == action && !d.Place.before(s) })
}

// deniedExecution reports the execution of what was denied, and once what differs
// from it in amounts alone. The same action on something else is another matter.
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

// conditions reports the conditions of an approval that an execution breaks. An
// approval that was used at once may not have been meant for another execution.
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

// decide lets a decision take the place of the one on the same matter. An approval
// that merely repeats an earlier one does not end the conditions of that.
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
	for i := range ds.standing { // the very same is denied since the first time
		if old := &ds.standing[i]; d.Denied && old.Action == d.Action && old.Subject == d.Subject && old.Place.before(d.Place) {
			d.Place = old.Place
		}
	}
	ds.standing = slices.DeleteFunc(ds.standing, func(old decision) bool { return d.sameMatter(&old) })
	ds.add(d)
}

// sameMatter reports whether two decisions are on one escalation, or where one of
// them has no id, on one action.
func (d *decision) sameMatter(old *decision) bool {
	if d.ID != "" && old.ID != "" {
		return d.ID == old.ID
	}
	return d.Action == old.Action
}

// repeats reports whether an approval says again, without the conditions and not of
// a later time, what an earlier one said under conditions.
func (d *decision) repeats(old *decision) bool {
	return d.sameMatter(old) && !d.Denied && len(d.Conditions) == 0 && len(old.Conditions) > 0 && !d.At.After(old.At)
}

// yields reports whether a denial came certainly not after an approval on the same
// matter: of two answers of one place neither is the later one, and nobody is accused.
func (d *decision) yields(old *decision) bool {
	return d.sameMatter(old) && d.Denied && !old.Denied && !old.Place.before(d.Place)
}

// add makes a decision stand.
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
