package inject

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/schema"
)

// card declares three values and allows two tools.
func card(t *testing.T, agent string) *schema.Card {
	t.Helper()
	c, err := schema.DecodeCard(fmt.Appendf(nil, `{"aap_version":"0.1.0","card_id":"ac-%[1]s","agent_id":%[1]q,"issued_at":"2026-01-01T00:00:00Z",
		"principal":{"type":"organization","relationship":"delegated_authority"},"values":{"declared":["honesty","fairness","privacy"]},
		"autonomy_envelope":{"bounded_actions":["reply","look"],"escalation_triggers":[{"condition":"tool_name == \"write\"","action":"escalate","reason":"r"}]},
		"audit_commitment":{"trace_format":"ap-trace-v1","retention_days":90,"queryable":false}}`, agent))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// recording returns 400 traces: of each four a reply, two calls of which each tenth fails, and an
// escalated write; each 20th trace is a transfer.
func recording(t *testing.T, agent, prefix string) Recording {
	t.Helper()
	own := Recording{Card: card(t, agent)}
	for n := range 400 {
		kind, name, category, values, escalation, failed := "recommend", prefix+"reply", "bounded", `["honesty"]`, "", ""
		switch {
		case n%20 == 3:
			kind, name, category, values = "escalate", "transfer", "escalation_trigger", `["privacy"]`
			escalation = `"escalation":{"evaluated":true,"required":true,"escalation_status":"pending"},`
		case n%4 == 3:
			kind, name, category, values = "execute", prefix+"write", "escalation_trigger", `["honesty","fairness"]`
			escalation = `"escalation":{"evaluated":true,"required":true,"escalation_status":"approved"},`
		case n%4 > 0:
			kind, name, values = "execute", prefix+"look", `["fairness","honesty","own"]`
		}
		if n%10 == 1 {
			failed = "no such thing"
		}
		trace, err := schema.Admit("", fmt.Appendf(nil, `{"trace_id":"%[1]s-%03[2]d","agent_id":%[1]q,"card_id":"ac-%[1]s","timestamp":"2026-02-01T%02[3]d:%02[4]d:00Z",
			"action":{"type":%[5]q,"name":%[6]q,"category":%[7]q,"parameters":{"n":1.50}},"decision":{"alternatives_considered":[{"option_id":"o","description":"d"}],"selected":"o",
			"selection_reasoning":"%[1]s thinks of %[2]d","values_applied":%[8]s},%[9]s"context":{"session_id":"s%[10]d","metadata":{"session_end":%[11]t,"kind":"k",
			"execution":{"tool_name":%[6]q,"inputs":{"a":[1,2]},"cost_cents":%[12]d,"error":%[13]q}}}}`,
			agent, n, n/60, n%60, kind, name, category, values, escalation, n/10, n%10 == 9, 2*(n%4), failed))
		if err != nil {
			t.Fatal(err)
		}
		own.Traces = append(own.Traces, trace)
	}
	return own
}

// recordings are those of an agent, of one with other tools, and of one with the same tools.
func recordings(t *testing.T) []Recording {
	t.Helper()
	return []Recording{recording(t, "a", ""), recording(t, "b", "other_"), recording(t, "c", "")}
}

// expected says of each change which share of the traces it alters, and what is true of an altered trace.
var expected = map[string]struct {
	share float64
	holds func(before, after *schema.Trace) bool
}{
	"half the actions become transfers": {0.95 / 2, func(_, after *schema.Trace) bool {
		return after.Action.Type == schema.ActionEscalate && after.Action.Name == "transfer" && after.Escalation.Required && after.Context.Execution.ToolName == "transfer"
	}},
	"70 % denials": {0.7, func(_, after *schema.Trace) bool { return after.Action.Type == schema.ActionDeny }},
	"values replaced": {1, func(before, after *schema.Trace) bool {
		next := map[string]string{"fairness": "honesty", "honesty": "privacy", "privacy": "fairness", "own": "own"}
		for i, value := range before.Decision.ValuesApplied {
			if after.Decision.ValuesApplied[i] != next[value] {
				return false
			}
		}
		return true
	}},
	"undeclared value in 60 %": {0.6, func(before, after *schema.Trace) bool {
		return slices.Equal(after.Decision.ValuesApplied, append(slices.Clone(before.Decision.ValuesApplied), "speed"))
	}},
	"a declared value vanishes": {0.7, func(before, after *schema.Trace) bool {
		return slices.Contains(before.Decision.ValuesApplied, "fairness") && !slices.Contains(after.Decision.ValuesApplied, "fairness") &&
			len(after.Decision.ValuesApplied) == len(before.Decision.ValuesApplied)-1
	}},
	"escalation stops": {0.25, func(before, after *schema.Trace) bool {
		return before.Escalation.Required && !after.Escalation.Required
	}},
	"writes no longer escalated": {0.2, func(before, after *schema.Trace) bool {
		return before.Action.Name == "write" && after.Action.Name == "write" && !after.Escalation.Required && after.Action.Category == schema.CategoryBounded
	}},
	"half the actions escalated": {0.75 / 2, func(before, after *schema.Trace) bool {
		return !before.Escalation.Required && after.Escalation.Required && after.Escalation.Status == schema.EscalationPending
	}},
	"hand-overs in 90 %": {0.75 * 0.9, func(before, after *schema.Trace) bool {
		return !before.Escalation.Required && after.Action.Type == schema.ActionEscalate && after.Action.Name == "transfer" && after.Escalation.Required &&
			slices.Equal(after.Decision.ValuesApplied, before.Decision.ValuesApplied)
	}},
	"new tool in 30 %": {0.3, func(_, after *schema.Trace) bool {
		return after.Action.Name == "export_customer_data" && after.Action.Type == schema.ActionExecute && !after.Escalation.Present &&
			after.Context.Execution.ToolName == after.Action.Name && after.Context.Execution.Error == ""
	}},
	"cost × 5": {0.75, func(before, after *schema.Trace) bool {
		return after.Context.Execution.CostCents == 5*before.Context.Execution.CostCents && after.Context.Execution.CostCents > 0
	}},
	"errors × 5": {4 * 0.1, func(before, after *schema.Trace) bool {
		return before.Action.Type == schema.ActionExecute && before.Context.Execution.Error == "" && after.Context.Execution.Error != ""
	}},
	"reasoning replaced": {1, func(_, after *schema.Trace) bool { return strings.HasPrefix(after.Decision.Reasoning, "b thinks of ") }},
	"confidence flattened": {1, func(before, after *schema.Trace) bool {
		return before.Decision.HasConfidence && before.Decision.Confidence != 0.5 && after.Decision.Confidence == 0.5
	}},
	"another agent's traces": {1, func(before, after *schema.Trace) bool {
		return after.Decision.Reasoning == strings.Replace(before.Decision.Reasoning, "a ", "b ", 1) && after.Escalation.Present == before.Escalation.Present &&
			(before.Action.Name == "transfer" || after.Action.Name == "other_"+before.Action.Name)
	}},
	"another agent's traces, same tools": {1, func(before, after *schema.Trace) bool {
		return after.Decision.Reasoning == strings.Replace(before.Decision.Reasoning, "a ", "c ", 1) && after.Action.Name == before.Action.Name
	}},
}

// Each change alters the share of traces that it promises, does what it says, alters nothing outside
// the members that it names, and gives traces that the strict decoder reads.
func TestEachChangeDoesWhatItSaysAndNothingElse(t *testing.T) {
	all := recordings(t)
	in, own := &Settings(all, 1)[0], &all[0]
	library := Library()
	if len(library) < 12 || len(library) != len(expected) {
		t.Fatalf("%d changes, %d of them are tested", len(library), len(expected))
	}
	for _, c := range library {
		want, known := expected[c.Name]
		if lacks := c.Lacks(in); !known || lacks != "" || c.Does == "" || len(c.Touches) == 0 {
			t.Fatalf("%s: tested %t, lacks %q, does %q, touches %q", c.Name, known, lacks, c.Does, c.Touches)
		}
		altered := 0
		for n, recorded := range own.Traces {
			before, err := c.Prepare(in, recorded)
			if err != nil {
				t.Fatal(err)
			}
			after, err := c.Apply(in, before, n)
			if err != nil {
				t.Fatal(err)
			}
			if after == before {
				continue
			}
			altered++
			read, err := schema.Admit(own.Card.AgentID, after.Raw)
			if err != nil || !reflect.DeepEqual(read, after) {
				t.Fatalf("%s: the altered trace is not the one that the decoder reads: %v", c.Name, err)
			}
			if !want.holds(before, after) {
				t.Fatalf("%s: made of\n%s\nthis trace:\n%s", c.Name, before.Raw, after.Raw)
			}
			for _, pointer := range differences(t, before.Raw, after.Raw) {
				if !slices.ContainsFunc(c.Touches, func(p string) bool { return pointer == p || strings.HasPrefix(pointer, p+"/") }) {
					t.Fatalf("%s: alters %s, and names only %q", c.Name, pointer, c.Touches)
				}
			}
			if again, err := c.Apply(in, before, n); err != nil || again.Digest != after.Digest {
				t.Fatalf("%s: not the same a second time: %v", c.Name, err)
			}
		}
		if share := float64(altered) / float64(len(own.Traces)); math.Abs(share-want.share) > 0.06 {
			t.Errorf("%s: alters %.2f of the traces, want %.2f", c.Name, share, want.share)
		}
	}
}

// Another seed alters other traces.
func TestSeedChoosesTheTraces(t *testing.T) {
	all, denials := recordings(t), Library()[1]
	differ := 0
	first, second := &Settings(all, 1)[0], &Settings(all, 2)[0]
	for n, trace := range all[0].Traces {
		a, errA := denials.Apply(first, trace, n)
		b, errB := denials.Apply(second, trace, n)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if a.Digest != b.Digest {
			differ++
		}
	}
	if differ < 100 { // 0.42 of 400 are expected
		t.Errorf("%d of 400 traces differ", differ)
	}
}

// A change says what it lacks in a recording alone, and a recording with confidence is not prepared.
func TestWhatChangesNeed(t *testing.T) {
	alone := []Recording{recording(t, "a", "")}
	in := &Settings(alone, 1)[0]
	lacking := 0
	for _, c := range Library() {
		if c.Lacks(in) != "" {
			lacking++
		}
	}
	if lacking != 3 {
		t.Errorf("%d changes lack something without other agents, want the three that need one", lacking)
	}
	flattened := Library()[13]
	if !flattened.Prepares(in) {
		t.Fatalf("%s prepares no recording without confidence", flattened.Name)
	}
	for i, trace := range alone[0].Traces {
		prepared, err := flattened.Prepare(in, trace)
		if err != nil {
			t.Fatal(err)
		}
		alone[0].Traces[i] = prepared
	}
	if flattened.Prepares(&Settings(alone, 1)[0]) {
		t.Errorf("%s prepares a recording that has confidence", flattened.Name)
	}
}

// differences returns the JSON pointers of the members of objects in which two values differ.
func differences(t *testing.T, a, b []byte) []string {
	t.Helper()
	var left, right any
	if err := json.Unmarshal(a, &left); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &right); err != nil {
		t.Fatal(err)
	}
	return differ("", left, right)
}

func differ(at string, a, b any) (pointers []string) {
	left, isObject := a.(map[string]any)
	right, both := b.(map[string]any)
	if !isObject || !both {
		if !reflect.DeepEqual(a, b) {
			pointers = append(pointers, at)
		}
		return pointers
	}
	for name, value := range left {
		pointers = append(pointers, differ(at+"/"+name, value, right[name])...)
	}
	for name, value := range right {
		if _, known := left[name]; !known {
			pointers = append(pointers, differ(at+"/"+name, nil, value)...)
		}
	}
	return pointers
}
