package drift

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// Each category of AAP section 8.5, and its opposite, which must not have it.
func TestNamesAreTrue(t *testing.T) {
	elsewhere := func(_ int, t *schema.Trace) {
		t.Decision.Reasoning = "Sponsored partner inventory maximizes quarterly revenue, and clicks exceed plan."
	}
	wordy := func(_ int, t *schema.Trace) { t.Decision.Reasoning += " " + t.Decision.Reasoning }
	profit := func(_ int, t *schema.Trace) { t.Decision.ValuesApplied = []string{"honesty", "speed", "profit"} }
	asking := func(i int, t *schema.Trace) { t.Escalation.Required = t.Escalation.Required || i%2 == 0 }
	for name, c := range map[string]struct {
		usually, change func(i int, t *schema.Trace)
		direction       schema.Direction // empty: no alert
		measure         string           // that opens the condition
		summary         string           // its beginning
	}{
		"undeclared values": {nil, func(_ int, t *schema.Trace) { t.Decision.ValuesApplied = append(t.Decision.ValuesApplied, "profit") },
			schema.ValueDrift, "undeclared_values", "Decisions that apply a value that the card does not declare rose from 0 % of decisions (0 of 100 in the baseline) to 100 % ("},
		"a declared value given up": {nil, func(_ int, t *schema.Trace) { t.Decision.ValuesApplied = []string{"speed"} },
			schema.ValueDrift, "value_down:honesty", "Use of the declared value honesty fell from 100 % of decisions other than denials (100 of 100 in the baseline) to 0 % ("},
		"another declared value": {nil, func(_ int, t *schema.Trace) {
			t.Decision.ValuesApplied = []string{"honesty", "speed", "principal_benefit"}
		}, "", "", ""},
		"nothing escalated": {nil, func(_ int, t *schema.Trace) {
			if t.Action.Name == "refund" {
				t.Action.Type, t.Escalation.Required = schema.ActionExecute, false
			}
		}, schema.AutonomyExpansion, "unescalated_outside", "Actions without an escalation rose from 0 % of actions outside bounded_actions (0 of 10 in the baseline) to 100 % ("},
		"everything escalated": {nil, func(_ int, t *schema.Trace) { t.Escalation.Required = true },
			schema.UnknownDirection, "escalations_up", "Escalations rose from 10 % of decisions of the baseline's actions (10 of 100 in the baseline) to "},
		"the same actions, with type escalate": {nil, func(_ int, t *schema.Trace) { t.Action.Type, t.Escalation.Required = schema.ActionEscalate, true },
			schema.UnknownDirection, "escalations_up", "Escalations rose from 10 % of decisions of the baseline's actions (10 of 100 in the baseline) to "},
		"the same actions, with type execute": {nil, func(_ int, t *schema.Trace) {
			if t.Action.Name != "refund" {
				t.Action.Type = schema.ActionExecute
			}
		}, "", "", ""},
		"a tool that nobody named": {nil, func(i int, t *schema.Trace) {
			if i%2 == 0 {
				t.Action.Type, t.Action.Name, t.Escalation.Required = schema.ActionExecute, "export", false
			}
		}, schema.AutonomyExpansion, "unescalated_outside", "Actions without an escalation rose from 0 % of actions outside bounded_actions (0 of 10 in the baseline) to 100 % ("},
		"a tool that nobody named, escalated": {nil, func(_ int, t *schema.Trace) { t.Action.Name, t.Escalation.Required = "export", true },
			schema.UnknownDirection, "new_tools", "Actions that neither baseline nor card name rose from 0 % of decisions (0 of 100 in the baseline) to 100 % ("},
		"a tool that the card names": {nil, func(i int, t *schema.Trace) {
			if t.Action.Name == "refund" {
				t.Action.Name = "cancel"
			}
		}, "", "", ""},
		"other words": {nil, elsewhere, schema.CommunicationDrift, "wording", "Reasoning worded unlike the baseline's rose from "},
		"other words and denials": {nil, func(i int, t *schema.Trace) {
			elsewhere(i, t)
			t.Action.Type = schema.ActionDeny
		}, schema.UnknownDirection, "denials", "Denials rose from 0 % of decisions (0 of 100 in the baseline) to "},
		"less benefit":    {scored("0.8"), scored("0.2"), schema.PrincipalMisalignment, "principal_benefit_down", "A principal_benefit below nine tenths of the baseline's rose from 0 % of scored decisions (0 of 100 in the baseline) to 100 % ("},
		"more benefit":    {scored("0.8"), scored("0.9"), "", "", ""},
		"less confidence": {atConfidence(.9), atConfidence(.4), schema.PrincipalMisalignment, "confidence_down", "Confidence below nine tenths of the baseline's rose from 0 % of decisions (0 of 100 in the baseline) to 100 % ("},
		"less confidence with benefit scored": {func(i int, t *schema.Trace) { scored("0.8")(i, t); atConfidence(.9)(i, t) }, atConfidence(.4),
			schema.UnknownDirection, "confidence_down", "Confidence below "},
		"errors": {nil, func(_ int, t *schema.Trace) { t.Context.Execution.Error = "timed out" },
			schema.UnknownDirection, "errors", "Errors rose from 0 % of executed actions (0 of 50 in the baseline) to 100 % ("},
		"higher costs": {nil, func(_ int, t *schema.Trace) { t.Context.Execution.CostCents = 50 },
			schema.UnknownDirection, "cost_up", "Costs above nine tenths of the baseline's rose from "},
		"a new tool among rising escalations": {nil, func(i int, t *schema.Trace) {
			t.Escalation.Required = true
			if i > 260 {
				t.Action.Name = "export"
			}
		}, schema.UnknownDirection, "escalations_up", "Escalations rose from "},
		"refunds refused": {nil, func(_ int, t *schema.Trace) {
			if t.Action.Name == "refund" {
				t.Action.Type, t.Escalation.Required = schema.ActionDeny, false
			}
		}, "", "", ""}, // a refusal is no action without an escalation
		"fewer undeclared values": {profit, func(_ int, t *schema.Trace) { t.Decision.ValuesApplied = []string{"honesty", "speed"} }, "", "", ""},
		"one declared value for another": {nil, func(_ int, t *schema.Trace) { t.Decision.ValuesApplied = []string{"principal_benefit", "speed"} },
			schema.ValueDrift, "value_down:honesty", "Use of the declared value honesty fell from 100 % "},
		"escalations inside the envelope stop": {asking, func(_ int, t *schema.Trace) { t.Escalation.Required = t.Action.Name == "refund" },
			schema.AutonomyExpansion, "escalations_down", "Escalations fell: "},
		"nothing outside the envelope any more": {nil, func(_ int, t *schema.Trace) {
			if t.Action.Name == "refund" {
				t.Action, t.Escalation.Required = schema.Action{Type: schema.ActionExecute, Name: "search", Category: schema.CategoryBounded}, false
			}
		}, "", "", ""}, // what is escalated is not done any more
		"other words about new tools": {nil, func(i int, t *schema.Trace) {
			elsewhere(i, t)
			t.Action.Name, t.Escalation.Required = "export", true
		}, schema.UnknownDirection, "new_tools", "Actions that neither baseline nor card name rose from "},
		"shorter reasons": {wordy, func(_ int, t *schema.Trace) {
			t.Decision.Reasoning = t.Decision.Reasoning[:len(t.Decision.Reasoning)/2]
		},
			schema.CommunicationDrift, "reasoning_shorter", "Reasoning shorter than nine tenths of the baseline's rose from "},
		"longer reasons": {nil, wordy,
			schema.CommunicationDrift, "reasoning_longer", "Reasoning longer than nine tenths of the baseline's rose from "},
		"more confidence": {atConfidence(.5), atConfidence(.9), schema.UnknownDirection, "confidence_up", "Confidence above nine tenths of the baseline's rose from "},
		"lower costs": {nil, func(_ int, t *schema.Trace) { t.Context.Execution.CostCents = 1 },
			schema.UnknownDirection, "cost_down", "Costs below nine tenths of the baseline's rose from "},
		"nothing": {nil, nil, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			samples := changing(400, 200, c.usually, c.change)
			_, all := events(samples)
			if c.direction == "" {
				if len(all) != 0 {
					t.Fatalf("%d events, the first: %+v", len(all), all[0])
				}
				return
			}
			if len(all) == 0 {
				t.Fatal("no alert")
			}
			for _, a := range all {
				if a.Analysis.DriftDirection != c.direction {
					t.Errorf("revision %d has direction %s, want %s: %q", a.Revision, a.Analysis.DriftDirection, c.direction, a.Measures)
				}
			}
			a := all[0]
			if a.Measures[0] != c.measure || !strings.HasPrefix(a.Summary, c.summary) {
				t.Errorf("opened by %q: %q, want %s: %q", a.Measures, a.Summary, c.measure, c.summary)
			}
			// The alert names three traces, each of which the change altered.
			for _, id := range a.TraceIDs {
				i := slices.IndexFunc(samples, func(x Sample) bool { return x.TraceID == id })
				before := changing(i+1, i+1, c.usually, nil)[i]
				if i < 200 || reflect.DeepEqual(samples[i], before) {
					t.Errorf("trace %s, which the change did not alter, is named to show it", id)
				}
			}
			if newest := samples[200+int(a.OpenedAt.Sub(samples[200].EventTime)/time.Minute)].TraceID; len(a.TraceIDs) != 3 || slices.Max(a.TraceIDs) > newest {
				t.Errorf("traces %q of an alert opened at %s", a.TraceIDs, a.OpenedAt)
			}
		})
	}
}

// The traces of a condition are counted, whichever of its measures they show: the closing event does not
// say that all of them show its first one.
func TestClosingOfSeveralMeasures(t *testing.T) {
	_, all := events(changing(900, 200, nil, func(i int, t *schema.Trace) {
		if i < 260 {
			t.Context.Execution.Error, t.Context.Execution.CostCents = "timed out", 50
		}
	}))
	if len(all) == 0 {
		t.Fatal("no alert")
	}
	last := all[len(all)-1]
	if last.State != schema.AlertClosed || len(last.Measures) < 2 || !strings.HasSuffix(last.Summary, "traces that showed a change of one of the alert's measures.") {
		t.Errorf("%s of %q: %q", last.State, last.Measures, last.Summary)
	}
}

// A lower confidence counts as less principal_benefit only where the card declares it.
func TestConfidenceWithoutPrincipalBenefit(t *testing.T) {
	samples := changing(400, 200, atConfidence(.9), atConfidence(.4))
	for i := range samples {
		samples[i].DeclaresBenefit = false
	}
	_, all := events(samples)
	if len(all) == 0 || all[0].Measures[0] != "confidence_down" || all[0].Analysis.DriftDirection != schema.UnknownDirection {
		t.Errorf("events %+v", all)
	}
}

// An agent that does more of what it always did without a value has not given the value up, and neither has one
// that does something new without it.
func TestOtherTasksGiveNoValueUp(t *testing.T) {
	for name, c := range map[string]struct{ before, every int }{"a rare action": {2, 2}, "a new action": {0, 2}, "a new action alone": {0, 1}} {
		_, all := events(changing(500, 0, func(i int, t *schema.Trace) {
			if i >= 200 && i%c.every == 0 || i%10 == 2 && i < 10*c.before {
				t.Action = schema.Action{Type: schema.ActionExecute, Name: "cancel", Category: schema.CategoryEscalation}
				t.Escalation.Required, t.Decision.ValuesApplied = true, []string{"speed"}
			}
		}, nil))
		if len(all) == 0 || !slices.Contains(all[0].Measures, "value_down:honesty") {
			t.Fatalf("%s: the value is applied less often, and the events are %+v", name, all)
		}
		for _, a := range all {
			if a.Analysis.DriftDirection != schema.UnknownDirection {
				t.Errorf("%s: %s: %s", name, a.Analysis.DriftDirection, a.Summary)
			}
		}
	}
}
