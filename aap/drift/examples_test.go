package drift

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/schema"
)

// An alert names the three traces of the whole condition that show best what it says: of costs the highest,
// whenever they came.
func TestBestExamplesOfAFigure(t *testing.T) {
	costs := map[int]int64{203: 90, 250: 80, 391: 100}
	_, all := events(changing(500, 200, nil, func(i int, t *schema.Trace) {
		if t.Context.Execution.CostCents = 50; costs[i] != 0 {
			t.Context.Execution.CostCents = costs[i]
		}
	}))
	last := all[len(all)-1]
	if !slices.Contains(last.Measures, "cost_up") || last.Count < 192 {
		t.Fatalf("%d traces, %q", last.Count, last.Measures)
	}
	for _, a := range all {
		want := []string{"s0203"}
		switch {
		case a.Count >= 192:
			want = []string{"s0391", "s0203", "s0250"}
		case a.Count > 51:
			want = []string{"s0203", "s0250"}
		}
		if !slices.Equal(a.TraceIDs[:len(want)], want) || len(a.TraceIDs) != best {
			t.Errorf("revision %d, after %d traces, names %q, want %q first", a.Revision, a.Count, a.TraceIDs, want)
		}
	}
}

// Of the similarity these are the traces of the lowest, and the sentence has their figures.
func TestBestExamplesOfTheSimilarity(t *testing.T) {
	samples := changing(300, 0, nil, func(i int, t *schema.Trace) {
		if i >= 208 && i <= 212 {
			t.Action = schema.Action{Type: schema.ActionExecute, Name: "cancel", Category: schema.CategoryForbidden}
			t.Decision.ValuesApplied, t.Escalation = nil, schema.Escalation{Present: true, Required: true}
		}
		if i == 209 {
			t.Action.Type = schema.ActionDeny
		}
	})
	var s State
	scores := map[string]float64{}
	for _, x := range samples {
		out := s.Step(x, DefaultParams())
		scores[out.TraceID] = out.Similarity
		a := out.Alert
		if a == nil || a.Measures[0] != similarityName || a.State != schema.AlertOpened {
			continue
		}
		want := []string{"s0208", "s0209", "s0210"}
		slices.SortStableFunc(want, func(a, b string) int {
			if scores[a] == scores[b] {
				return -1 // the newer one first: the list is ascending
			}
			return int(1000 * (scores[a] - scores[b]))
		})
		if want[0] != "s0209" || a.TraceIDs[0] != want[0] || len(a.TraceIDs) != best {
			t.Errorf("it names %q, want %q: %v", a.TraceIDs, want, scores)
		}
		sentence := fmt.Sprintf("to as low as %.2f, %.2f and %.2f.", scores[a.TraceIDs[0]], scores[a.TraceIDs[1]], scores[a.TraceIDs[2]])
		if a.Summary[len(a.Summary)-len(sentence):] != sentence {
			t.Errorf("%q does not end with %q", a.Summary, sentence)
		}
		return
	}
	t.Error("no alert")
}

// The examples of all tests have a place for each of few traces. Where these are not enough, those of the
// test with the least evidence go, and never those of the condition.
func TestPlacesOfExamples(t *testing.T) {
	d := detector{tests: make([]running, fixedTests)}
	c := &condition{joined: []joined{{test: test(denials)}}}
	for i := range 3 * places {
		trace := shower{fmt.Sprint("t", i), -1}
		of := test(i / best % int(fixedTests))
		d.tests[of].evidence[0] = float32(100 - int(of))
		d.show(&trace, of, 2, c)
		if len(d.traces) > places {
			t.Fatalf("%d traces are kept", len(d.traces))
		}
	}
	if got := d.ids(c.joined[0].examples); !slices.Equal(got, []string{"t2", "t1", "t0"}) && !slices.Equal(got, d.ids(d.examples[denials])) {
		t.Errorf("the condition has %q", got)
	}
	last := (3*places - 1) / best % int(fixedTests)
	if got := d.ids(d.examples[last]); len(got) == 0 || got[0] != fmt.Sprint("t", 3*places-1) {
		t.Errorf("the newest trace has no place: %q", got)
	}
}

// A smaller rise of escalations than one that raises an alarm is a rise, too: no expansion of autonomy. Its
// opposite, the same change without it, is one.
func TestNoExpansionWhereEscalationsRise(t *testing.T) {
	for share, want := range map[int]schema.Direction{20: schema.AutonomyExpansion, 6: schema.UnknownDirection} {
		samples := changing(400, 200, nil, func(i int, t *schema.Trace) {
			t.Action, t.Escalation.Required = schema.Action{Type: schema.ActionExecute, Name: "export", Category: schema.CategoryBounded}, false
			switch {
			case i%share == 4: // escalated as in the baseline, where it is one decision in 10
				t.Action, t.Escalation.Required = usual(4).Action, true
			case i%3 > 0:
				t.Action = usual(i - i%10).Action
			}
		})
		_, all := events(samples)
		if len(all) == 0 || all[0].Measures[0] != "unescalated_outside" && all[0].Measures[0] != "new_tools" {
			t.Fatalf("events %+v", all)
		}
		for _, a := range all {
			if slices.Contains(a.Measures, "escalations_up") {
				t.Errorf("escalations of one in %d are a measure of the alert: the test needs a smaller rise", share)
			}
		}
		if last := all[len(all)-1]; last.Analysis.DriftDirection != want {
			t.Errorf("with an escalation of one decision in %d the direction is %s, want %s: %s", share, last.Analysis.DriftDirection, want, last.Summary)
		}
	}
}

// The examples that a state has are read as written, with an open condition and without.
func TestExamplesAreReadAsWritten(t *testing.T) {
	var s State
	for _, x := range changing(260, 200, nil, func(i int, t *schema.Trace) {
		if t.Context.Execution.CostCents = int64(40 + i%9); i%3 > 0 {
			t.Action.Type = schema.ActionDeny
		}
	}) {
		s.Step(x, DefaultParams())
		data, err := s.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		read, err := UnmarshalState(data)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := read.Marshal(); err != nil || !slices.Equal(again, data) || !reflect.DeepEqual(read.detector.examples, s.detector.examples) {
			t.Fatalf("%s: %+v, want %+v; %v", x.TraceID, read.detector.examples, s.detector.examples, err)
		}
	}
	if s.open == nil || len(s.open.best(&s.detector)) != best {
		t.Errorf("the condition is %+v", s.open)
	}
}
