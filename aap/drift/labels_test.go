package drift

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/schema/published"
)

// The two changes of drift_labels.jsonl, continued for thirty sessions, under the default of the stream.
// Other values that the card declares are no value_drift unless one is given up, and escalations that
// rise are no expansion of autonomy.
func TestLabelsOfContinuedChanges(t *testing.T) {
	file := published.Read(t, "conformance/aap/drift_labels.jsonl")
	want := map[string]struct {
		directions []schema.Direction
		measure    string // must be among the alert's
		not        []string
	}{
		"value_drift with declared, bounded only": {
			[]schema.Direction{schema.UnknownDirection}, "similarity", []string{"undeclared_values", "unescalated_outside"}},
		"autonomy_expansion while every trace escalates": {
			[]schema.Direction{schema.ValueDrift, schema.UnknownDirection}, "similarity", []string{"undeclared_values", "unescalated_outside", "escalations_down"}},
	}
	for line := range bytes.Lines(bytes.TrimSpace(file)) {
		var c struct {
			ID     string            `json:"id"`
			Card   json.RawMessage   `json:"card"`
			Traces []json.RawMessage `json:"traces"`
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		expected, known := want[c.ID]
		if !known || len(c.Traces) != 6 {
			t.Fatalf("case %q with %d traces is none that this test knows", c.ID, len(c.Traces))
		}
		t.Run(c.ID, func(t *testing.T) {
			_, all := events(continued(t, c.Card, c.Traces))
			if len(all) == 0 {
				t.Fatal("no alert")
			}
			for _, a := range all {
				if !slices.Contains(expected.directions, a.Analysis.DriftDirection) {
					t.Errorf("revision %d: category %s by %q", a.Revision, a.Analysis.DriftDirection, a.Measures)
				}
				for _, measure := range expected.not {
					if slices.Contains(a.Measures, measure) {
						t.Errorf("revision %d has measure %s", a.Revision, measure)
					}
				}
				given := slices.ContainsFunc(a.Measures, func(m string) bool { return m == "value_down:honesty" })
				if a.Analysis.DriftDirection == schema.ValueDrift && !given {
					t.Errorf("revision %d is value_drift by %q", a.Revision, a.Measures)
				}
			}
			if last := all[len(all)-1]; !slices.Contains(last.Measures, expected.measure) {
				t.Errorf("measures %q lack %s", last.Measures, expected.measure)
			}
		})
	}
}

// continued repeats the first three traces in twenty sessions and the other three in ten more.
func continued(t *testing.T, rawCard []byte, raw []json.RawMessage) (samples []Sample) {
	t.Helper()
	card, err := schema.DecodeCard(rawCard)
	if err != nil {
		t.Fatal(err)
	}
	facts := FactsOf(card)
	for session := range 30 {
		from := 0
		if session >= 20 {
			from = 3
		}
		for i := range 6 {
			trace, err := schema.Admit("", bytes.Clone(raw[from+i%3]))
			if err != nil {
				t.Fatal(err)
			}
			trace.TraceID = fmt.Sprintf("%d-%d", session, i)
			trace.Digest = schema.DigestOf([]byte(trace.TraceID))
			trace.Timestamp = epoch.Add(time.Duration(6*session+i) * time.Minute)
			trace.Context.SessionID, trace.Context.SessionEnd = fmt.Sprint("session-", session), i == 5
			samples = append(samples, SampleOf(trace, facts))
		}
	}
	return samples
}
