package drift

import (
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/aap/similarity"
	"github.com/plumbline/plumbline/schema"
)

func TestUnknownCardHasNoUndeclaredValues(t *testing.T) {
	x := SampleOf(badTrace(0), CardFacts{CardID: "ac-nowhere"})
	if x.Undeclared != 0 || x.Values != 2 || x.CardID != "ac-nowhere" || x.DeclaresBenefit {
		t.Errorf("sample %+v", x)
	}
}

// The benefit is that of the selected alternative and must be a number.
func TestBenefitOfTheSelectedAlternative(t *testing.T) {
	for name, c := range map[string]struct {
		selected string
		factors  schema.Members // of B
		benefit  float64
		has      bool
	}{
		"selected":       {"B", factor("principal_benefit", "0.25"), 0.25, true},
		"of none":        {"B", factor("principal_benefit", "0"), 0, true},
		"a text":         {"B", factor("principal_benefit", `"high"`), 0, false},
		"not scored":     {"B", factor("cost", "0.25"), 0, false},
		"none selected":  {"", factor("principal_benefit", "0.25"), 0, false},
		"not considered": {"C", factor("principal_benefit", "0.25"), 0, false},
	} {
		trace := goodTrace(0)
		trace.Decision.Selected = c.selected
		trace.Decision.Alternatives = []schema.Alternative{
			{OptionID: "A", ScoringFactors: factor("principal_benefit", "0.9")},
			{OptionID: "B", ScoringFactors: c.factors},
		}
		if x := SampleOf(trace, FactsOf(testCard)); x.HasBenefit != c.has || x.Benefit != c.benefit {
			t.Errorf("%s: benefit %v (%v), want %v (%v)", name, x.Benefit, x.HasBenefit, c.benefit, c.has)
		}
	}
}

func factor(name, value string) schema.Members {
	return schema.Members{{Name: name, Value: []byte(value)}}
}

// Only the part of a text that a sketch reads is kept, in whole characters.
func TestReasoningIsBounded(t *testing.T) {
	for text, want := range map[string]int{
		strings.Repeat("x", 1023):       1023,
		strings.Repeat("x", 1024):       1024,
		strings.Repeat("x", 1025):       1024,
		"x" + strings.Repeat("é", 511):  1023,
		"x" + strings.Repeat("é", 512):  1023,
		"x" + strings.Repeat("é", 2500): 1023,
	} {
		trace := goodTrace(0)
		trace.Decision.Reasoning = text
		if got := SampleOf(trace, FactsOf(testCard)).Reasoning; got != text[:want] {
			t.Errorf("%d bytes, %d are kept, want %d", len(text), len(got), want)
		}
	}
}

// A feature with a long key remains one feature of the same kind and weight; its key is
// replaced by its hash. A shorter key stays unchanged. Of many features the first are kept.
func TestFeaturesAreBounded(t *testing.T) {
	trace := goodTrace(0)
	long := strings.Repeat("v", maxKeyBytes-len("value:"))
	trace.Decision.ValuesApplied = []string{long, long + "v"}
	usual := similarity.TraceFeatures(trace, nil)
	for i, f := range SampleOf(trace, FactsOf(testCard)).Features {
		switch {
		case usual[i].Key == "value:"+long+"v":
			if !strings.HasPrefix(f.Key, "value:sha256:") || len(f.Key) != len("value:sha256:")+64 || f.Weight != usual[i].Weight {
				t.Errorf("a long key is kept as %+v", f)
			}
		case f != usual[i]:
			t.Errorf("feature %d is %+v, want %+v", i, f, usual[i])
		}
	}
	for i := range 5000 {
		trace.Decision.ValuesApplied = append(trace.Decision.ValuesApplied, strings.Repeat("w", 100+i))
	}
	usual = similarity.TraceFeatures(trace, nil)
	kept := SampleOf(trace, FactsOf(testCard)).Features
	if len(kept) != MaxFeatures {
		t.Fatalf("%d features, want %d", len(kept), MaxFeatures)
	}
	for i, f := range kept {
		if len(f.Key) > maxKeyBytes || f.Weight != usual[i].Weight || len(usual[i].Key) <= maxKeyBytes && f.Key != usual[i].Key {
			t.Errorf("feature %d is %+v, want one of the weight %v", i, f, usual[i].Weight)
		}
	}
	if again := SampleOf(trace, FactsOf(testCard)).Features; !slices.Equal(kept, again) {
		t.Error("the bounded features differ from run to run")
	}
}

// Every fact that the measures need comes from the trace and its card.
func TestFactsOfATrace(t *testing.T) {
	card := &schema.Card{CardID: "ac-f", Values: schema.Values{Declared: []string{"honesty", "speed"}}, Autonomy: schema.Autonomy{
		BoundedActions:   []string{"search: looks for flights", "reply"},
		ForbiddenActions: []string{"wire_money"},
		EscalationTriggers: []schema.Trigger{
			{Condition: `tool_name == "refund" and amount > 10 or tool_name == "rebook"`}, {Condition: "amount > 100"},
		},
	}}
	trace := goodTrace(0)
	trace.Context.SessionID, trace.Context.SessionEnd = "s-1", true
	trace.Context.Execution = schema.Execution{Present: true, CostCents: 12, Error: "timed out"}
	trace.Action = schema.Action{Type: schema.ActionExecute, Name: "search"}
	trace.Decision.ValuesApplied = []string{"speed", "profit", "speed", "honesty"}
	trace.Decision.Reasoning = strings.Repeat("é", 3000)
	x := SampleOf(trace, FactsOf(card))
	if x.Session != "s-1" || !x.SessionEnd || !x.Order.IsZero() || x.Kind() != Acts || x.Denies() || x.Name != "search" {
		t.Errorf("the decision and its session: %+v", x)
	}
	if !x.HasCard || !x.Inside || x.Undeclared != 1 || !slices.Equal(x.Declared, []string{"value:speed", "value:honesty"}) {
		t.Errorf("what the card says: %+v", x)
	}
	if !x.HasExecution || !x.Error || x.Cost != 12 || x.Length != 3000 || !x.HasConfidence || x.Confidence != 0.9 {
		t.Errorf("figures: %+v", x)
	}
	for name, want := range map[string]struct{ inside, named bool }{
		"search": {true, true}, "reply": {true, true}, "search, reply": {true, false}, "wire_money": {false, true},
		"refund": {false, true}, "rebook": {false, true}, "delete": {false, false}, "amount": {false, false},
	} {
		trace.Action.Name = name
		if x := SampleOf(trace, FactsOf(card)); x.Inside != want.inside || x.Named != want.named {
			t.Errorf("action %q is inside: %v, named: %v; want %+v", name, x.Inside, x.Named, want)
		}
	}
	trace = goodTrace(0)
	trace.Action.Type, trace.Decision.HasConfidence = schema.ActionDeny, false
	x = SampleOf(trace, CardFacts{CardID: "ac-nowhere"})
	if x.Session != "~utc-2026-02-01" || x.SessionEnd || x.Kind() != Answers || !x.Denies() {
		t.Errorf("a denial without a session: %+v", x)
	}
	if x.HasCard || x.Inside || x.Named || x.Declared != nil || x.HasExecution || x.Error || x.HasConfidence || x.Confidence != 1 {
		t.Errorf("what is unknown: %+v", x)
	}
}
