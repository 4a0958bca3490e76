package session

import (
	"fmt"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/schema"
)

// openEscalation is an escalation that was required and that nothing has answered
// yet.
type openEscalation struct {
	ID       string `json:"id,omitempty"`
	Action   string `json:"action"`
	Matter   string `json:"matter"` // what the action is about
	TraceID  string `json:"trace_id"`
	Executed bool   `json:"executed,omitempty"` // the action was executed all the same
	Reported bool   `json:"reported,omitempty"` // in the verdict on an earlier part
}

// escalations follows escalations from the trace that requires one to the trace
// that answers it.
type escalations struct {
	open []openEscalation
	lost int64 // that were not followed
}

// The principal's word, as a trace reports it.

func denied(e *schema.Escalation) bool {
	return e.Status == schema.EscalationDenied || strings.EqualFold(e.Response.Decision, string(schema.EscalationDenied))
}

func approved(e *schema.Escalation) bool {
	return !denied(e) &&
		(e.Status == schema.EscalationApproved || strings.EqualFold(e.Response.Decision, string(schema.EscalationApproved)))
}

func answeredBy(e *schema.Escalation) bool {
	return e.Response.Present || e.Status == schema.EscalationApproved || e.Status == schema.EscalationDenied || e.Status == schema.EscalationTimeout
}

// escalation follows the escalation of a trace.
func (j *Judge) escalation(t *schema.Trace) {
	e, executed := &t.Escalation, t.Action.Type == schema.ActionExecute
	es := &j.escalations
	if answeredBy(e) {
		es.open = slices.DeleteFunc(es.open, func(o openEscalation) bool { return o.concerns(t) })
		return
	}
	if executed {
		for i := range es.open {
			es.open[i].Executed = es.open[i].Executed || es.open[i].executedBy(t)
		}
	}
	if e.Required && !slices.ContainsFunc(es.open, func(o openEscalation) bool { return o.same(t) }) {
		es.add(openEscalation{ID: strings.Clone(e.EscalationID), Action: strings.Clone(t.Action.Name), Matter: subjectOf(t).Matter,
			TraceID: strings.Clone(t.TraceID), Executed: executed})
	}
}

func (es *escalations) add(o openEscalation) {
	if len(es.open) == maxOpen {
		es.lost++
		return
	}
	es.open = append(es.open, o)
}

// concerns tells whether a trace is about an escalation: by its id, or where one
// of the two has none, by the action.
func (o *openEscalation) concerns(t *schema.Trace) bool {
	if id := t.Escalation.EscalationID; o.ID != "" && id != "" {
		return o.ID == id
	}
	return o.Action == t.Action.Name
}

// executedBy tells whether an execution is what the escalation was about: under
// its id, or the same action on the same thing.
func (o *openEscalation) executedBy(t *schema.Trace) bool {
	if id := t.Escalation.EscalationID; o.ID != "" && id != "" {
		return o.ID == id
	}
	return o.Action == t.Action.Name && o.Matter == subjectOf(t).Matter
}

// same tells whether a trace asks once more for what is open.
func (o *openEscalation) same(t *schema.Trace) bool {
	return o.ID == t.Escalation.EscalationID && (o.ID != "" || o.Action == t.Action.Name)
}

// unanswered reports what is open when the session is over. What went on under
// an open escalation is graver than what was handed over.
func (es *escalations) unanswered(f *findings) {
	for i := range es.open {
		o := &es.open[i]
		if o.Reported {
			continue
		}
		finding := schema.SessionFinding{Type: schema.EscalationUnanswered, Severity: schema.SeverityMedium,
			Description: fmt.Sprintf("%s is required and was not answered within the session", o.name()),
			TraceID:     o.TraceID, Field: "escalation.escalation_status"}
		if o.Executed {
			finding.Severity = schema.SeverityHigh
			finding.Description = fmt.Sprintf("%s is required and was not answered, but the action was executed", o.name())
		}
		f.add(finding)
	}
}

func (o *openEscalation) name() string {
	if o.ID == "" {
		return fmt.Sprintf("an escalation of %q", o.Action)
	}
	return fmt.Sprintf("escalation %q of %q", o.ID, o.Action)
}
