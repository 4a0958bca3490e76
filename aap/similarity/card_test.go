package similarity

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/plumbline/plumbline/schema"
)

// Exactly the features in the table of AAP section 8.3.
func TestCardFeaturesAreThoseOfTheTable(t *testing.T) {
	card := &schema.Card{
		Principal: schema.Principal{Type: "human", Relationship: "advisory"},
		Values:    schema.Values{Declared: []string{"honesty", "privacy", "honesty"}, ConflictsWith: []string{"tracking"}},
		Autonomy: schema.Autonomy{
			BoundedActions: []string{"search", "book: reserves a seat"}, ForbiddenActions: []string{"delete"},
			EscalationTriggers: []schema.Trigger{{Condition: "amount > 100", Action: schema.TriggerEscalate}, {Condition: "night", Action: schema.TriggerLog}},
		},
		Audit: schema.Audit{Queryable: true, TamperEvidence: "signed"},
	}
	got := fmt.Sprint(CardFeatures(card))
	const want = "[{value:honesty 1} {value:privacy 1} {action_name:search 1} {action_name:book: reserves a seat 1} {action_name:book 1} " +
		"{category:human 1} {category:advisory 1} {escalation:required 1}]"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	card.Autonomy.EscalationTriggers = card.Autonomy.EscalationTriggers[1:]
	if got := CardFeatures(card); slices.Contains(got, Feature{keyRequired, 1}) {
		t.Errorf("a card without escalation triggers: %v", got)
	}
}

// Scores computed by hand: the square root of the share that the card declares.
func TestScoreByHand(t *testing.T) {
	card := NewCard(&schema.Card{
		Values: schema.Values{Declared: []string{"a", "b"}},
		Autonomy: schema.Autonomy{
			BoundedActions:     []string{"search", "compare", "book: reserves a seat", ": nothing is named"},
			EscalationTriggers: []schema.Trigger{{Condition: "amount > 100", Action: schema.TriggerEscalate}},
		},
	})
	for _, c := range []struct {
		name, action, values string
		required             bool
		want                 float64
	}{
		{"everything is declared", "search", "a b", false, 1},
		{"an action alone", "search", "", false, 1},
		{"an entry with a description", "book", "a", false, 1},
		{"a compound name", "search, compare", "", false, 1},
		{"half of a compound name", "search, pay", "a", false, 0.7071},
		{"a compound name that ends early", "search,", "a", false, 0.7071},
		{"an escalation that the card asks for", "pay", "a", true, 0.8165},
		{"an action that is not bounded", "pay", "a", false, 0.7071},
		{"a quarter is declared", "pay", "a x y", false, 0.5},
		{"less than a quarter", "pay", "a x y z", false, 0.4472},
		{"the same value twice", "search", "x x", false, 0.7071},
		{"nothing is declared", "pay", "", false, 0},
	} {
		trace := &schema.Trace{
			Action:     schema.Action{Type: schema.ActionExecute, Category: schema.CategoryBounded, Name: c.action},
			Decision:   schema.Decision{ValuesApplied: strings.Fields(c.values), Confidence: 0.2, HasConfidence: true},
			Escalation: schema.Escalation{Present: true, Evaluated: true, Required: c.required},
		}
		if got := card.Score(trace); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	plain := NewCard(&schema.Card{Values: schema.Values{Declared: []string{"a"}}})
	if got := plain.Score(&schema.Trace{Action: schema.Action{Name: "pay"}, Escalation: schema.Escalation{Present: true, Required: true}}); got != 0 {
		t.Errorf("an escalation without a trigger: %v", got)
	}
}

// The score is the cosine of the two vectors, over the trace's features of the kinds that both
// can have.
func TestScoreIsACosine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOf(rapid.SampledFrom([]string{"a", "b", "c", "x", "y"}))
		card := &schema.Card{
			Principal: schema.Principal{Type: "human", Relationship: "advisory"},
			Values:    schema.Values{Declared: names.Draw(t, "declared"), ConflictsWith: names.Draw(t, "conflicts")},
			Autonomy:  schema.Autonomy{BoundedActions: names.Draw(t, "bounded"), ForbiddenActions: names.Draw(t, "forbidden")},
		}
		if rapid.Bool().Draw(t, "escalates") {
			card.Autonomy.EscalationTriggers = []schema.Trigger{{Condition: "x", Action: schema.TriggerEscalate}}
		}
		trace := anyTrace(t, "")
		trace.Escalation.Required = trace.Escalation.Present && rapid.Bool().Draw(t, "required")
		var shown Vector
		for _, f := range TraceFeatures(trace, nil) {
			if strings.HasPrefix(f.Key, "value:") || strings.HasPrefix(f.Key, "action_name:") || f.Key == "escalation:required" {
				shown = append(shown, f)
			}
		}
		declared := slices.DeleteFunc(CardFeatures(card), func(f Feature) bool { return !slices.Contains(shown, f) })
		if got, want := NewCard(card).Score(trace), Round4(Cosine(shown, declared)); got != want {
			t.Fatalf("score %v, cosine %v", got, want)
		}
	})
}

// Other permissions of a card do not change the score of a trace.
func TestScoreDoesNotDependOnWhatElseIsAllowed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		trace := anyTrace(t, "")
		narrow := &schema.Card{Values: schema.Values{Declared: []string{"a", "b"}}, Autonomy: schema.Autonomy{BoundedActions: []string{"c"}}}
		wide := &schema.Card{Values: schema.Values{Declared: []string{"a", "b"}}, Autonomy: schema.Autonomy{BoundedActions: []string{"c"}}}
		for i := range rapid.IntRange(1, 50).Draw(t, "more") {
			wide.Values.Declared = append(wide.Values.Declared, fmt.Sprint("value", i))
			wide.Autonomy.BoundedActions = append(wide.Autonomy.BoundedActions, fmt.Sprint("action", i))
		}
		if a, b := NewCard(narrow).Score(trace), NewCard(wide).Score(trace); a != b {
			t.Fatalf("%v by a narrow card, %v by a wide one", a, b)
		}
	})
}
