package session

import (
	"slices"
	"strings"

	"github.com/plumbline/plumbline/schema"
)

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

// clear drops the executions that an approval of the same place permits: it would have
// permitted them had it arrived first.
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
