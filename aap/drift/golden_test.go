package drift

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/plumbline/plumbline/schema"
)

// The published vectors, found beside the repository: under profile spec the
// directions that the vectors' own notes say, under reference what the published
// SDK really gives (which contradicts one of them).
func TestPublishedVectors(t *testing.T) {
	for _, c := range []struct {
		file      string
		last      int // index of the trace that the alert ends with
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
			samples, p := readVector(t, c.file), DefaultParams()
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
	path := filepath.Join("..", "..", "..", "shared", "conformance", "aap", "drift_cases", name)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("the published vectors are not beside the repository: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
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
