package session

import (
	"fmt"
	"strings"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// The principal's decision, as a trace reports it in status or response. A trace that reports
// both an approval and a denial counts as a denial.

func denied(e *schema.Escalation) bool { return says(e, schema.EscalationDenied) }

func approved(e *schema.Escalation) bool { return !denied(e) && says(e, schema.EscalationApproved) }

// answers reports whether a trace reports an answer: an approval, a denial or a timeout. Any
// other response does not count as an answer.
func answers(e *schema.Escalation) bool {
	return denied(e) || approved(e) || says(e, schema.EscalationTimeout)
}

func says(e *schema.Escalation, word schema.EscalationStatus) bool {
	return e.Status == word || strings.EqualFold(e.Response.Decision, string(word))
}

// answer checks the principal's answer as a trace reports it.
func (j *Judge) answer(t *schema.Trace, s stamp) {
	e := &t.Escalation
	if says(e, schema.EscalationDenied) && says(e, schema.EscalationApproved) {
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
