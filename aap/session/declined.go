package session

import (
	"fmt"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/schema"
)

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
	case t.Action.Type == schema.ActionDeny && at < 0 && !j.decisions.approvedBeside(t.Action.Name, s):
		if len(*ds) == maxDeclined {
			*ds = slices.Delete(*ds, 0, 1)
			j.decisions.lost++
		}
		*ds = append(*ds, declined{Action: strings.Clone(t.Action.Name), Whole: whole, TraceID: strings.Clone(t.TraceID), Place: s})
	}
}

func (d *declined) size() int { return 150 + len(d.Action) + len(d.TraceID) }
