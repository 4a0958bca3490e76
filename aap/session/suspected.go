package session

import (
	"slices"
	"strings"

	"github.com/plumbline/plumbline/schema"
)

// suspected is the execution of what was denied. A trace of its own place may report an
// approval yet: neither of the two is the later one, whichever arrives first.
type suspected struct {
	id, action string // of the trace
	denial     string // id of the denial, where the trace names it
	at         stamp
	finding    schema.SessionFinding
}

// suspect notes an execution of what was denied.
func (j *Judge) suspect(t *schema.Trace, denial string, s stamp, severity schema.Severity, description string) {
	if len(j.suspected) == maxSuspected {
		j.found.add(j.suspected[0].finding)
		j.suspected = slices.Delete(j.suspected, 0, 1)
	}
	j.suspected = append(j.suspected, suspected{strings.Clone(t.Escalation.EscalationID), strings.Clone(t.Action.Name), denial, s,
		schema.SessionFinding{Type: schema.DeniedButActed, Severity: severity, Description: description,
			TraceID: strings.Clone(t.TraceID), Field: "action.type"}})
}

// clear drops what an approval of the same place clears: what it would have permitted,
// had it arrived first.
func (j *Judge) clear(t *schema.Trace, s stamp) {
	id := t.Escalation.EscalationID
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
