package otel

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/plumbline/plumbline/schema"
)

// recorded returns the spans that a framework's exporter sent.
func recorded(t testing.TB, framework string) ptrace.Traces {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata/frameworks", framework+".json"))
	if err != nil {
		t.Fatal(err)
	}
	if size, err := Size(JSON, raw); err != nil || size < int64(len(raw)) {
		t.Fatal(size, err)
	}
	traces, err := Decode(JSON, raw)
	if err != nil {
		t.Fatal(err)
	}
	return traces
}

// mapAll maps every span.
func mapAll(traces ptrace.Traces) (results []Result) {
	for _, resource := range traces.ResourceSpans().All() {
		for _, scope := range resource.ScopeSpans().All() {
			for _, span := range scope.Spans().All() {
				results = append(results, Map(resource.Resource(), scope.Scope(), span))
			}
		}
	}
	return results
}

// The recorded spans of three frameworks give the traces that docs/OTEL.md says, and no others.
func TestFrameworks(t *testing.T) {
	onlyAction := `[{action the action itself: %s 0 false [] []}]`
	for _, c := range []struct {
		framework string
		unmapped  map[string]int
		traces    []string
	}{
		{"vercel", map[string]int{ReasonModelCall: 3, ReasonOtherSpan: 3, ReasonAgentRun: 1}, []string{
			`get_stock {"sku":"kettle-7"} | ` + fmt.Sprintf(onlyAction, "get_stock") + ` action "The span records no reasoning." [honesty] | "" get_stock {"sku":"kettle-7"} {"sku":"kettle-7","available":2} ""`,
			`reserve {"sku":"kettle-7","quantity":2} | ` + fmt.Sprintf(onlyAction, "reserve") + ` action "The span records no reasoning." [] | "" reserve {"sku":"kettle-7","quantity":2} - "the warehouse does not answer"`,
		}},
		{"langgraph", map[string]int{ReasonModelCall: 3, ReasonOtherSpan: 16}, []string{
			`get_stock - | ` + fmt.Sprintf(onlyAction, "get_stock") + ` action "The span records no reasoning." [] | "thread-1" get_stock "kettle-7" {"output":{"lc":1,"type":"constructor","id":["langchain_core","messages","ToolMessage"],"kwargs":{"status":"success","content":"{\"sku\":\"kettle-7\",\"available\":2}","tool_call_id":"call-1","name":"get_stock","metadata":{"versions":{"@langchain/core":"1.4.0"}},"additional_kwargs":{},"response_metadata":{}}}} ""`,
			`reserve {"sku":"kettle-7","quantity":2} | ` + fmt.Sprintf(onlyAction, "reserve") + ` action "The span records no reasoning." [] | "thread-1" reserve {"sku":"kettle-7","quantity":2} - "the warehouse does not answer"`,
		}},
		{"adk", map[string]int{ReasonOtherSpan: 5, ReasonAgentRun: 1}, []string{
			`get_stock {"sku":"kettle-7"} | [{get_stock look the stock up 0.9 true [] []} {reserve reserve at once 0.4 true [] [unverified]}] get_stock "A reservation without stock would fail." [honesty] | "" get_stock {"sku":"kettle-7"} {"sku":"kettle-7","available":2} ""`,
		}},
	} {
		var traces []string
		unmapped := map[string]int{}
		for _, r := range mapAll(recorded(t, c.framework)) {
			if len(r.Faults) > 0 || len(r.Unread) > 0 {
				t.Errorf("%s: %v %v", c.framework, r.Faults, r.Unread)
			}
			if r.Trace == nil {
				unmapped[r.Reason]++
				continue
			}
			trace, err := schema.Admit("did:web:kettles.example", r.Trace)
			if err != nil {
				t.Fatalf("%s: %v in %s", c.framework, err, r.Trace)
			}
			if trace.CardID != "ac-kettles" || trace.Action.Type != schema.ActionExecute || trace.Action.Category != schema.CategoryBounded || trace.Timestamp.Year() != 2026 {
				t.Errorf("%s: %s", c.framework, r.Trace)
			}
			traces = append(traces, told(trace))
		}
		slices.Sort(traces)
		if !slices.Equal(traces, c.traces) {
			t.Errorf("%s:\n%s\nwant\n%s", c.framework, strings.Join(traces, "\n"), strings.Join(c.traces, "\n"))
		}
		if fmt.Sprint(unmapped) != fmt.Sprint(c.unmapped) {
			t.Errorf("%s: without a trace are %v, want %v", c.framework, unmapped, c.unmapped)
		}
	}
}

// told returns what a trace says about its decision, in a line.
func told(t *schema.Trace) string {
	parameters := "-"
	if t.Action.Parameters != nil {
		parts := make([]string, len(t.Action.Parameters))
		for i, m := range t.Action.Parameters {
			parts[i] = fmt.Sprintf("%q:%s", m.Name, m.Value)
		}
		parameters = "{" + strings.Join(parts, ",") + "}"
	}
	x := t.Context.Execution
	failure, _, _ := strings.Cut(x.Error, "\n") // the rest is a stack trace
	return fmt.Sprintf("%s %s | %v %s %q %v | %q %s %s %s %q", t.Action.Name, parameters, t.Decision.Alternatives, t.Decision.Selected, t.Decision.Reasoning,
		t.Decision.ValuesApplied, t.Context.SessionID, x.ToolName, orDash(x.Inputs), orDash(x.Outputs), failure)
}

func orDash(raw []byte) string {
	if raw == nil {
		return "-"
	}
	return string(raw)
}
