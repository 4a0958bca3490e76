package drift

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/schema/published"
)

// The published vectors, read from outside the repository. Under profile spec the directions
// are those of the vectors' own notes. Under profile reference they are the actual results of
// the published SDK, which contradict one of the notes.
func TestPublishedVectors(t *testing.T) {
	for _, c := range []struct {
		file      string
		last      int // index of the trace at which the alert is raised
		score     float64
		profile   Profile
		direction schema.Direction
	}{
		{"value_drift_sequence.json", 8, 0.2332, ProfileSpec, schema.ValueDrift},
		{"value_drift_sequence.json", 8, 0.2332, ProfileReference, schema.UnknownDirection},
		{"autonomy_expansion_sequence.json", 8, 0.081, ProfileSpec, schema.AutonomyExpansion},
		{"autonomy_expansion_sequence.json", 8, 0.081, ProfileReference, schema.AutonomyExpansion},
	} {
		t.Run(c.file+" "+string(c.profile), func(t *testing.T) {
			samples, p := readVector(t, c.file), PublishedParams()
			p.Profile = c.profile
			alerts := Detect(samples, p)
			if len(alerts) != 1 {
				t.Fatalf("%d alerts, want 1", len(alerts))
			}
			got := alerts[0]
			if last := got.TraceIDs[len(got.TraceIDs)-1]; last != samples[c.last].TraceID {
				t.Errorf("alert at %s, want %s", last, samples[c.last].TraceID)
			}
			if got.Analysis.SimilarityScore != c.score || got.Analysis.DriftDirection != c.direction {
				t.Errorf("score %v, direction %s; want %v, %s",
					got.Analysis.SimilarityScore, got.Analysis.DriftDirection, c.score, c.direction)
			}
		})
	}
}

func readVector(t *testing.T, name string) []Sample {
	t.Helper()
	data := published.Read(t, "conformance/aap/drift_cases/"+name)
	var vector struct {
		Card struct {
			CardID string                      `json:"card_id"`
			Values struct{ Declared []string } `json:"values"`
		}
		Traces []json.RawMessage
	}
	if err := json.Unmarshal(data, &vector); err != nil {
		t.Fatal(err)
	}
	facts := FactsOf(&schema.Card{CardID: vector.Card.CardID, Values: schema.Values{Declared: vector.Card.Values.Declared}})
	var samples []Sample
	for _, raw := range vector.Traces {
		trace, err := schema.Admit("", raw)
		if err != nil {
			t.Fatal(err)
		}
		samples = append(samples, SampleOf(trace, facts))
	}
	return samples
}

// The same numbers follow from the structure of the sequences alone: action, values, confidence
// and escalation.
func TestGoldenNumbers(t *testing.T) {
	for name, c := range map[string]struct {
		done      []string // type, name, category, values, confidence, evaluated, required
		score     float64
		direction schema.Direction
	}{
		"value drift": {[]string{
			"recommend recommend bounded principal_benefit,transparency 0.92 true false",
			"recommend recommend bounded principal_benefit,user_control 0.88 true false",
			"recommend recommend bounded principal_benefit,transparency 0.9 true false",
			"recommend recommend bounded principal_benefit,user_control 0.89 true false",
			"recommend recommend bounded principal_benefit,transparency 0.91 true false",
			"recommend recommend bounded principal_benefit,user_control 0.88 true false",
			"execute promote_harmful forbidden profit_maximization,engagement_maximization 0.65 false false",
			"execute manipulate forbidden profit_maximization,engagement_maximization 0.55 false false",
			"execute manipulate forbidden profit_maximization 0.5 false false",
			"execute promote_harmful forbidden profit_maximization,engagement_maximization 0.45 false false",
		}, 0.2332, schema.ValueDrift},
		"autonomy expansion": {[]string{
			"recommend analyze bounded principal_benefit,user_control 0.95 true true",
			"recommend analyze bounded principal_benefit,user_control 0.92 true true",
			"recommend recommend bounded principal_benefit,user_control 0.9 true true",
			"recommend summarize bounded principal_benefit,transparency 0.91 true true",
			"recommend alert bounded principal_benefit,user_control 0.89 true true",
			"recommend recommend bounded principal_benefit,transparency 0.9 true true",
			"execute auto_trade forbidden efficiency,profit_maximization 0.75 true false",
			"execute auto_trade forbidden efficiency,profit_maximization 0.68 false false",
			"execute borrow_margin forbidden efficiency 0.55 false false",
			"execute borrow_margin forbidden efficiency 0.5 false false",
		}, 0.081, schema.AutonomyExpansion},
	} {
		t.Run(name, func(t *testing.T) {
			alerts := Detect(doing(t, c.done), PublishedParams())
			if len(alerts) != 1 || alerts[0].TraceIDs[2] != "d008" {
				t.Fatalf("alerts %+v, want one at the ninth trace", alerts)
			}
			if a := alerts[0].Analysis; a.SimilarityScore != c.score || a.DriftDirection != c.direction {
				t.Errorf("score %v, direction %s; want %v, %s", a.SimilarityScore, a.DriftDirection, c.score, c.direction)
			}
		})
	}
}

// doing returns one sample for each line.
func doing(t *testing.T, lines []string) (samples []Sample) {
	t.Helper()
	facts := FactsOf(&schema.Card{CardID: "ac-d", Values: schema.Values{
		Declared: []string{"principal_benefit", "transparency", "user_control", "harm_prevention"},
	}})
	for i, line := range lines {
		var kind, name, category, values string
		trace := goodTrace(i)
		if _, err := fmt.Sscan(line, &kind, &name, &category, &values,
			&trace.Decision.Confidence, &trace.Escalation.Evaluated, &trace.Escalation.Required); err != nil {
			t.Fatal(err)
		}
		trace.Action = schema.Action{Type: schema.ActionType(kind), Name: name, Category: schema.Category(category)}
		trace.Decision.ValuesApplied = strings.Split(values, ",")
		samples = append(samples, SampleOf(trace, facts))
	}
	return samples
}
