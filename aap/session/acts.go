package session

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// answerSkew is the difference between the clocks of an agent and its principal
// that explains a response dated after the action that rests on it.
const answerSkew = time.Minute

// act is an execution of what an escalation is about, before any trace reports an
// answer. The answer may have been given all the same: whether it was shows only
// when a trace reports it.
type act struct {
	TraceID  string `json:"trace_id"`
	Action   string `json:"action"`
	ID       string `json:"id,omitempty"` // of the escalation that the trace names
	At       stamp  `json:"at"`
	Pending  bool   `json:"pending,omitempty"`  // the trace itself says that the escalation is pending
	Reported bool   `json:"reported,omitempty"` // in the verdict on an earlier part
}

// act notes an execution of what is open: of what it asks for itself, or was asked
// for before it. A trace that does not say itself that its escalation is pending
// counts where it can be about one open escalation only and rests on no approval.
func (j *Judge) act(t *schema.Trace, about subject, s stamp) {
	es, e := &j.escalations, &t.Escalation
	a := act{TraceID: strings.Clone(t.TraceID), Action: strings.Clone(t.Action.Name), ID: strings.Clone(e.EscalationID), At: s,
		Pending: e.Status == schema.EscalationPending}
	var of *openEscalation // its own, else the one that the least trace asks for, whichever came first
	asks, matching := false, 0
	for i := range es.open {
		o := &es.open[i]
		own := e.Required && o.same(t)
		if !o.executedBy(t, about) || !own && !o.At.before(s) {
			continue
		}
		o.Executed = true
		if named := a.ID != "" && o.ID == a.ID; !a.Pending && !named && (o.Whole != about.Whole || j.decisions.approve(a.Action)) {
			continue
		}
		matching++
		if of == nil || own || !asks && o.TraceID < of.TraceID {
			of, asks = o, own
		}
	}
	switch {
	case matching == 0 || matching > 1 && !a.Pending || es.covered(a.ID, a.Action, s):
	case len(of.Acts) == maxActs:
		es.lost++
	default:
		of.Acts = append(of.Acts, a)
	}
}

// accused is an execution that came before its answer, as far as the part shows
// until its end.
type accused struct {
	act
	escalation string // its id
	finding    schema.SessionFinding
}

// forgive drops the executions that an answer under the same id turns out to be dated
// before, whatever another trace showed.
func (es *escalations) forgive(t *schema.Trace) {
	id, dated := t.Escalation.EscalationID, t.Escalation.Response.Timestamp
	es.accused = slices.DeleteFunc(es.accused, func(a accused) bool {
		return id != "" && a.escalation == id && a.follows(dated)
	})
}

// follows reports whether an execution came after a response of that date, as far as
// clocks show; zero is unknown.
func (a *act) follows(dated time.Time) bool {
	at := time.Unix(0, a.At.Time)
	if !a.Pending {
		at = at.Add(answerSkew)
	}
	return !dated.IsZero() && !dated.After(at)
}

// acted notes the executions of an escalation that the answer came after: by the
// date of the response, else by the place of the trace that reports it. What does
// not say itself that the escalation was pending is held against an answer to the
// very same only. A timeout is no answer, and acting after one is no fault (AAP
// section 7.3).
func (j *Judge) acted(o *openEscalation, t *schema.Trace, s stamp) {
	e, es := &t.Escalation, &j.escalations
	linked := o.ID != "" && o.ID == e.EscalationID ||
		len(o.Acts) > 0 && t.Action.Type != schema.ActionExecute && o.Whole == subjectOf(t).Whole // the approval of an execution is its own
	for _, a := range o.Acts {
		switch {
		case a.Reported || !a.At.before(s) || a.follows(e.Response.Timestamp):
		case !a.Pending && (!linked || !denied(e) && !approved(e)):
		case !a.Pending && e.Response.Timestamp.IsZero() && !o.At.before(a.At): // it asks in the same trace, and may have had its answer
		case len(es.accused) == maxOpen:
			es.lost++
		default:
			es.accused = append(es.accused, accused{act: a, escalation: cmp.Or(o.ID, strings.Clone(e.EscalationID)), finding: a.finding(o, t.TraceID)})
		}
	}
}

// finding says that an execution came before the answer, which the named trace
// reports; empty where none does.
func (a *act) finding(o *openEscalation, answer string) schema.SessionFinding {
	text := fmt.Sprintf("%q is executed before the answer to %s", a.Action, o.name())
	if a.Pending {
		text = fmt.Sprintf("%q is executed while %s is pending", a.Action, o.name())
	}
	if answer != "" {
		text += fmt.Sprintf("; trace %q reports the answer", answer)
	}
	return schema.SessionFinding{Type: schema.ActedBeforeAnswer, Severity: schema.SeverityHigh, Description: text,
		TraceID: a.TraceID, Field: "action.type"}
}
