package session

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// answerSkew is how much later than the action a response may be dated and still permit it,
// because the clocks of an agent and its principal differ.
const answerSkew = time.Minute

// act is an execution of an escalated action before any trace reports an answer. The answer may
// already exist: only a later trace that reports it shows when it was given.
type act struct {
	TraceID  string `json:"trace_id"`
	Action   string `json:"action"`
	ID       string `json:"id,omitempty"` // of the escalation that the trace names
	At       stamp  `json:"at"`
	Pending  bool   `json:"pending,omitempty"`  // the trace itself says that the escalation is pending
	Reported bool   `json:"reported,omitempty"` // in the verdict on an earlier part
}

// act notes an execution under an open escalation: one that the trace requires itself, or one
// that an earlier trace requires. A trace that does not itself call its escalation pending
// counts only if exactly one open escalation matches it and no approval does.
func (j *Judge) act(t *schema.Trace, about subject, s stamp) {
	es, e := &j.escalations, &t.Escalation
	a := act{TraceID: strings.Clone(t.TraceID), Action: strings.Clone(t.Action.Name), ID: strings.Clone(e.EscalationID), At: s,
		Pending: e.Status == schema.EscalationPending}
	var of *openEscalation // the trace's own, otherwise the one of the least trace id, so the order of arrival does not matter
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

// accused is an execution before its answer, according to the traces so far.
type accused struct {
	act
	escalation string // its id
	finding    schema.SessionFinding
}

// forgive drops executions that, by the date of an answer under the same id, came after that
// answer. Other traces do not matter then.
func (es *escalations) forgive(t *schema.Trace) {
	id, dated := t.Escalation.EscalationID, t.Escalation.Response.Timestamp
	es.accused = slices.DeleteFunc(es.accused, func(a accused) bool {
		return id != "" && a.escalation == id && a.follows(dated)
	})
}

// follows reports whether an execution came after a response of that date, as far as the clocks
// show. The zero date is unknown.
func (a *act) follows(dated time.Time) bool {
	at := time.Unix(0, a.At.Time)
	if !a.Pending {
		at = at.Add(answerSkew)
	}
	return !dated.IsZero() && !dated.After(at)
}

// acted notes the executions of an escalation that came before its answer. The date of the
// response decides, or else the place of the trace that reports it. An execution that does not
// itself call the escalation pending counts only if the answer is linked to the same
// escalation. A timeout is no answer, and acting after a timeout is no fault (AAP section 7.3).
func (j *Judge) acted(o *openEscalation, t *schema.Trace, s stamp) {
	e, es := &t.Escalation, &j.escalations
	linked := o.ID != "" && o.ID == e.EscalationID ||
		len(o.Acts) > 0 && t.Action.Type != schema.ActionExecute && o.Whole == subjectOf(t).Whole // an execution may carry the approval of its own
	for _, a := range o.Acts {
		switch {
		case a.Reported || !a.At.before(s) || a.follows(e.Response.Timestamp):
		case !a.Pending && (!linked || !denied(e) && !approved(e)):
		case !a.Pending && e.Response.Timestamp.IsZero() && !o.At.before(a.At): // the trace itself requires the escalation, and may have had its answer
		case len(es.accused) == maxOpen:
			es.lost++
		default:
			es.accused = append(es.accused, accused{act: a, escalation: cmp.Or(o.ID, strings.Clone(e.EscalationID)), finding: a.finding(o, t.TraceID)})
		}
	}
}

// finding says that an execution came before the answer. answer is the trace that reports it;
// empty where none does.
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
