package aap

import (
	"testing"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// The description of a violation or finding says what the trace says and what the card says.
func TestDescriptionsNameTraceAndCard(t *testing.T) {
	j := judge(t)
	for _, c := range []struct {
		trace       []string
		facts       Facts
		kind, wants string
	}{
		{[]string{searchName, `"name": "fly"`}, Facts{}, string(schema.UnboundedAction),
			`the trace calls "fly" a permitted action, but the card does not list it in bounded_actions`},
		{[]string{searchName, `"name": "delete"`}, Facts{}, string(schema.ForbiddenAction), `the card lists "delete" in forbidden_actions`},
		{[]string{searchName, `"name": "delete"`}, Facts{}, string(schema.CategoryMismatch),
			`the trace calls "delete" a permitted action, but the card lists it in forbidden_actions`},
		{[]string{bounded, `"category": "forbidden"`}, Facts{}, string(schema.CategoryMismatch),
			`the trace calls "search" forbidden, but the card lists it in bounded_actions`},
		{[]string{`"agent-1"`, `"agent-2"`}, Facts{}, string(schema.AgentMismatch), `agent "agent-2" used a card that belongs to agent "agent-1"`},
		{nil, Facts{Received: time.Date(2026, 3, 1, 11, 0, 0, 0, time.UTC)}, string(schema.TimeImplausible),
			"the trace's time is later than its receipt at 2026-03-01T11:00:00Z: is the agent's clock wrong?"},
	} {
		var v schema.Verdict
		j.Verify(admitted(t, replace(t, traceText, c.trace...)), compiled(t, cardText), c.facts, now, &v)
		said := map[string]string{}
		for _, violation := range v.Violations {
			said[string(violation.Type)] = violation.Description
		}
		for _, finding := range v.Findings {
			said[string(finding.Type)] = finding.Description
		}
		if said[c.kind] != c.wants {
			t.Errorf("%v: %s is described as %q, want %q", c.trace, c.kind, said[c.kind], c.wants)
		}
	}
}
