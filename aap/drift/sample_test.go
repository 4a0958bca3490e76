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
