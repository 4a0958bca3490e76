package session

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

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
	open   []openEscalation
	closed []answered // the newest
	early  []earlyAct
	lost   int64 // escalations and executions that were dropped
}

// escalation processes the escalation of a trace.
func (j *Judge) escalation(t *schema.Trace, s stamp) {
	e, es := &t.Escalation, &j.escalations
	executed := t.Action.Type == schema.ActionExecute
	switch {
	case denied(e) || approved(e) || e.Reports(schema.EscalationTimeout): // any other response is no answer
		j.close(t, s)
		return
	case !e.Required && (!executed || len(es.open) == 0):
		return
	}
	about := subjectOf(t)
	if e.Required {
		if es.alreadyAnswered(t, s) {
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

// close closes the escalations that a trace answers, and judges the executions before the
// answer.
func (j *Judge) close(t *schema.Trace, s stamp) {
	es, id := &j.escalations, strings.Clone(t.Escalation.EscalationID)
	dated := t.Escalation.Response.Timestamp
	// By the date of an answer under the same id, an execution came after that answer: other traces
	// do not matter then.
	es.early = slices.DeleteFunc(es.early, func(a earlyAct) bool {
		return id != "" && a.escalation == id && a.follows(dated)
	})
	closed := []answered{{id, strings.Clone(t.Action.Name), s}}
	es.open = slices.DeleteFunc(es.open, func(o openEscalation) bool {
		if !sameEscalation(o.ID, o.Action, id, t.Action.Name) {
			return false
		}
		j.acted(&o, t, s)
		closed = append(closed, answered{cmp.Or(o.ID, id), o.Action, s})
		return true
	})
	for _, c := range closed {
		for i := range es.open { // executions of the same place are dropped: neither trace is later
			o := &es.open[i]
			o.Acts = slices.DeleteFunc(o.Acts, func(a act) bool { return !a.At.before(c.At) && c.covers(a.ID, a.Action) })
		}
		if slices.Contains(es.closed, c) {
			continue
		}
		if len(es.closed) == maxOpen {
			es.closed = slices.Delete(es.closed, 0, 1)
		}
		es.closed = append(es.closed, c)
	}
}

// sameEscalation reports whether two traces or answers may be about the same escalation: their
// ids decide or, where one of the two has none, the actions.
func sameEscalation(id, action, otherID, otherAction string) bool {
	if id != "" && otherID != "" {
		return id == otherID
	}
	return action == otherAction
}

// covers reports whether an answer may belong to a trace with that escalation id and action.
func (c *answered) covers(id, action string) bool { return sameEscalation(c.ID, c.Action, id, action) }

// covered reports whether an answer covers the escalation or action of a trace at this place.
// The answer must be reported by a trace that is certainly not before this place.
func (es *escalations) covered(id, action string, s stamp) bool {
	return slices.ContainsFunc(es.closed, func(c answered) bool { return !c.At.before(s) && c.covers(id, action) })
}

// alreadyAnswered reports whether the escalation of a trace is already answered: by a trace of the same
// place, since neither of the two is later; or by an earlier trace under the same id, where
// this trace executes the action and only repeats the question.
func (es *escalations) alreadyAnswered(t *schema.Trace, s stamp) bool {
	id, action := t.Escalation.EscalationID, t.Action.Name
	if es.covered(id, action, s) {
		return true
	}
	return t.Action.Type == schema.ActionExecute && id != "" &&
		slices.ContainsFunc(es.closed, func(c answered) bool { return c.ID == id && c.Action == action })
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
		if named := a.ID != "" && o.ID == a.ID; !a.Pending && !named && (o.Whole != about.Whole || j.decisions.approved(a.Action, stamp{})) {
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

// earlyAct is an execution before its answer, according to the traces so far.
type earlyAct struct {
	act
	escalation string // its id
	finding    schema.SessionFinding
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
		case len(es.early) == maxOpen:
			es.lost++
		default:
			es.early = append(es.early, earlyAct{act: a, escalation: cmp.Or(o.ID, strings.Clone(e.EscalationID)), finding: a.finding(o, t.TraceID)})
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

// subject distinguishes actions with the same name, by digests.
type subject struct {
	Matter string `json:"matter"` // target and parameters, without numbers, booleans and nulls
	Whole  string `json:"whole"`  // target and all parameters
}

func subjectOf(t *schema.Trace) subject {
	parameters := slices.Clone(t.Action.Parameters)
	slices.SortFunc(parameters, func(a, b schema.Member) int { return strings.Compare(a.Name, b.Name) })
	var matter, whole []byte
	add := func(text []byte, part string) []byte {
		return append(binary.AppendUvarint(text, uint64(len(part))), part...)
	}
	matter = add(add(matter, t.Action.Target.Type), t.Action.Target.Identifier)
	whole = append(whole, matter...)
	for _, p := range parameters {
		whole = add(add(whole, p.Name), string(p.Value))
		if c := p.Value[0]; c == '"' || c == '[' || c == '{' {
			matter = add(add(matter, p.Name), string(p.Value))
		}
	}
	return subject{Matter: digest(matter), Whole: digest(whole)}
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
