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

// The principal's decision, as a trace reports it in status or response. A trace that reports
// both an approval and a denial counts as a denial.

func denied(e *schema.Escalation) bool   { return e.Reports(schema.EscalationDenied) }
func approved(e *schema.Escalation) bool { return !denied(e) && e.Reports(schema.EscalationApproved) }

// answer checks the principal's answer as a trace reports it.
func (j *Judge) answer(t *schema.Trace, s stamp) {
	e := &t.Escalation
	if denied(e) && e.Reports(schema.EscalationApproved) {
		j.find(schema.ContradictoryAnswer, schema.SeverityHigh, t.TraceID, "escalation.escalation_status",
			fmt.Sprintf("escalation_status is %q, and the principal's decision is %q", e.Status, clip(e.Response.Decision)))
	}
	if t.Action.Type == schema.ActionExecute {
		j.dated(t, s)
	}
}

// dated checks an execution against the date of the response that permits it: its own response,
// or else the approval under the id that it names.
func (j *Judge) dated(t *schema.Trace, s stamp) {
	e := &t.Escalation
	if at := e.Response.Timestamp; !at.IsZero() {
		if at.After(t.Timestamp.Add(answerSkew)) {
			j.find(schema.TimeImplausible, schema.SeverityMedium, t.TraceID, responseTime,
				fmt.Sprintf("%q is executed at %s, and the response is dated later: %s", t.Action.Name, instant(t.Timestamp), instant(at)))
		}
		return
	}
	d := j.decisions.under(e.EscalationID)
	if d == nil || !d.Place.before(s) || !d.Since.After(t.Timestamp.Add(answerSkew)) {
		return
	}
	text := fmt.Sprintf("%q is executed at %s, and trace %q dates the approval of escalation %q later: %s",
		t.Action.Name, instant(t.Timestamp), d.TraceID, d.ID, instant(d.Since))
	if approved(e) {
		j.find(schema.TimeImplausible, schema.SeverityMedium, t.TraceID, "escalation.escalation_status", text)
		return
	}
	j.find(schema.ActedBeforeAnswer, schema.SeverityHigh, t.TraceID, "action.type", text)
}

const responseTime = "escalation.principal_response.timestamp"

func instant(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }

// decision is a decision of the principal that is still in effect.
type decision struct {
	ID         string    `json:"id,omitempty"` // of the escalation
	Action     string    `json:"action"`
	TraceID    string    `json:"trace_id"` // of the trace that reports it
	Denied     bool      `json:"denied,omitempty"`
	Subject    subject   `json:"subject,omitzero"`   // of a denial: the subject of the action
	Reported   bool      `json:"told,omitempty"`     // an execution with other amounts was already reported
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
	if id := e.EscalationID; approved(e) {
		// An approval of the same place would have permitted an execution had it arrived first.
		j.suspected = slices.DeleteFunc(j.suspected, func(x suspected) bool {
			switch {
			case x.at.before(s):
				return false
			case x.denial != "" && id != "":
				return x.denial == id
			}
			return x.action == t.Action.Name || id != "" && x.id == id
		})
	}
	if denied(e) || approved(e) {
		j.decisions.decide(t, s)
	}
}

// execution checks an execution against the decision in effect for it: the decision on its own
// escalation, or else the newest on its action. A decision that a trace of the same place
// reports is not earlier. It reports the execution of a denied action, once one that differs
// only in amounts, and the conditions of an approval that the execution breaks.
func (j *Judge) execution(t *schema.Trace, s stamp) {
	d := j.decisions.of(t, s)
	if d == nil || !d.Place.before(s) {
		return
	}
	e := &t.Escalation
	named := d.ID != "" && d.ID == e.EscalationID
	switch {
	case d.Denied && !approved(e):
		about, of := subjectOf(t), ""
		if named {
			of = d.ID
		}
		switch {
		case named || d.Subject == about:
			j.suspect(t, of, s, schema.SeverityCritical,
				fmt.Sprintf("%q is executed after its denial in trace %q", t.Action.Name, d.TraceID))
		case d.Subject.Matter == about.Matter && !d.Reported: // the same action on another subject is not reported
			d.Reported = true
			j.suspect(t, of, s, schema.SeverityMedium,
				fmt.Sprintf("%q is executed with other amounts after its denial in trace %q", t.Action.Name, d.TraceID))
		}
	case !d.Denied && len(e.Response.Conditions) == 0 && (e.EscalationID == "" || e.EscalationID == d.ID):
		// The trace's own verdict covers conditions of its own. If the trace with the approval is
		// itself an execution, the approval may not apply to another one, so the severity is lower.
		severity := schema.SeverityHigh
		if d.Executed && !named {
			severity = schema.SeverityMedium
		}
		for _, i := range aap.Broken(d.compiled, t) {
			j.find(schema.ApprovalConditionBroken, severity, t.TraceID, fmt.Sprintf("escalation.principal_response.conditions[%d]", i),
				fmt.Sprintf("the approval in trace %q asks for `%s`, which this trace breaks", d.TraceID, d.compiled[i]))
		}
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

// approved reports whether an approval of the action is in effect, under any id, that a trace of
// this place or of a later one reported. The zero place is before all others.
func (ds *decisions) approved(action string, from stamp) bool {
	return slices.ContainsFunc(ds.standing, func(d decision) bool { return !d.Denied && d.Action == action && !d.Place.before(from) })
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
	for i := range ds.standing {
		switch old := &ds.standing[i]; {
		case !d.sameMatter(old):
		case !d.Denied && len(d.Conditions) == 0 && len(old.Conditions) > 0 && !d.At.After(old.At):
			return // an approval without conditions only repeats the one with conditions
		case d.Denied && !old.Denied && !old.Place.before(d.Place):
			return // the denial is not later than the approval: the approval stays, and nobody is accused
		}
	}
	for i := range ds.standing { // the denial of the same subject dates from the first time
		if old := &ds.standing[i]; d.Denied && old.Action == d.Action && old.Subject == d.Subject && old.Place.before(d.Place) {
			d.Place = old.Place
		}
	}
	ds.standing = slices.DeleteFunc(ds.standing, func(old decision) bool { return d.sameMatter(&old) })
	ds.add(d)
}

func (d *decision) sameMatter(old *decision) bool {
	return sameEscalation(d.ID, d.Action, old.ID, old.Action)
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

// suspected is the execution of a denied action. A trace of the same place may still report an
// approval: neither of the two is later, whichever arrives first.
type suspected struct {
	id, action string // of the trace
	denial     string // id of the denial, where the trace names it
	at         stamp
	finding    schema.SessionFinding
}

// suspect records an execution of a denied action.
func (j *Judge) suspect(t *schema.Trace, denial string, s stamp, severity schema.Severity, description string) {
	if len(j.suspected) == maxSuspected {
		j.found.add(j.suspected[0].finding)
		j.suspected = slices.Delete(j.suspected, 0, 1)
	}
	j.suspected = append(j.suspected, suspected{strings.Clone(t.Escalation.EscalationID), strings.Clone(t.Action.Name), denial, s,
		schema.SessionFinding{Type: schema.DeniedButActed, Severity: severity, Description: description,
			TraceID: strings.Clone(t.TraceID), Field: "action.type"}})
}

// declined is an action that the agent itself denied (action.type "deny"). An agent may change
// its mind when it learns more. So only an execution with exactly the same target and
// parameters is reported, and only once.
type declined struct {
	Action  string `json:"action"`
	Whole   string `json:"whole"` // of its subject
	TraceID string `json:"trace_id"`
	Place   stamp  `json:"place,omitzero"` // of the trace
}

// decline checks an execution against the agent's earlier denials, and records the denial in a
// trace.
func (j *Judge) decline(t *schema.Trace, s stamp) {
	ds := &j.declined
	if approved(&t.Escalation) {
		*ds = slices.DeleteFunc(*ds, func(d declined) bool { return d.Action == t.Action.Name })
		return
	}
	if t.Action.Type != schema.ActionDeny && (t.Action.Type != schema.ActionExecute || len(*ds) == 0) {
		return
	}
	whole := subjectOf(t).Whole
	at := slices.IndexFunc(*ds, func(d declined) bool { return d.Action == t.Action.Name && d.Whole == whole })
	switch {
	case t.Action.Type == schema.ActionExecute && at >= 0:
		if !(*ds)[at].Place.before(s) {
			return
		}
		j.suspect(t, "", s, schema.SeverityMedium,
			fmt.Sprintf("%q is executed although the agent denied the same in trace %q", t.Action.Name, (*ds)[at].TraceID))
		*ds = slices.Delete(*ds, at, at+1)
	case t.Action.Type == schema.ActionDeny && at < 0 && !j.decisions.approved(t.Action.Name, s):
		if len(*ds) == maxDeclined {
			*ds = slices.Delete(*ds, 0, 1)
			j.decisions.lost++
		}
		*ds = append(*ds, declined{Action: strings.Clone(t.Action.Name), Whole: whole, TraceID: strings.Clone(t.TraceID), Place: s})
	}
}

func (d *declined) size() int { return 150 + len(d.Action) + len(d.TraceID) }
