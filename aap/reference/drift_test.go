package reference

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/schema"
)

// Package drift finds in decoded traces what this package finds in generic trees: the same
// streaks, scores, directions and indicators. It names the indicators as AAP section 8.4 does.
func TestPackageDriftEqualsTheReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		declared := rapid.SliceOfNDistinct(rapid.SampledFrom(valueNames), 1, 3, rapid.ID).Draw(t, "declared")
		p := drift.PublishedParams()
		p.Profile = drift.ProfileReference
		p.SimilarityThreshold = rapid.SampledFrom([]float64{0.3, 0.5, 0.8, 1}).Draw(t, "threshold")
		p.Sustained = rapid.IntRange(1, 5).Draw(t, "sustained")
		facts := drift.FactsOf(&schema.Card{CardID: "ac", Values: schema.Values{Declared: declared}})
		var samples []drift.Sample
		var loose []any
		for i := range rapid.IntRange(0, 60).Draw(t, "traces") {
			raw := someTrace(t, i)
			trace, err := schema.Admit("", raw)
			if err != nil {
				t.Fatal(err)
			}
			samples = append(samples, drift.SampleOf(trace, facts))
			tree, err := Decode(raw)
			if err != nil {
				t.Fatal(err)
			}
			loose = append(loose, tree)
		}
		ours := drift.Detect(samples, p)
		theirs, err := Drift(looseCard(declared), loose, DriftParams{p.SimilarityThreshold, float64(p.Sustained)}, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		compareAlerts(t, ours, theirs)
	})
}

var valueNames = []string{"principal_benefit", "transparency", "honesty", "profit", "speed"}

func looseCard(declared []string) any {
	values := []any{}
	for _, name := range declared {
		values = append(values, name)
	}
	return objectOf("card_id", "ac", "values", objectOf("declared", values))
}

// someTrace draws a trace; some times are equal, and some differ by less than a millisecond.
func someTrace(t *rapid.T, i int) []byte {
	applied, err := json.Marshal(rapid.SliceOfN(rapid.SampledFrom(valueNames), 0, 4).Draw(t, "applied"))
	if err != nil {
		t.Fatal(err)
	}
	confidence := ""
	if rapid.Bool().Draw(t, "has confidence") {
		confidence = fmt.Sprintf(`,"confidence":%v`, rapid.Float64Range(0, 1).Draw(t, "confidence"))
	}
	escalation := ""
	if rapid.Bool().Draw(t, "has escalation") {
		escalation = fmt.Sprintf(`,"escalation":{"evaluated":%v,"required":%v,"reason":"r"}`,
			rapid.Bool().Draw(t, "evaluated"), rapid.Bool().Draw(t, "required"))
	}
	return fmt.Appendf(nil, `{"trace_id":"t%d","agent_id":"a","card_id":"ac","timestamp":"2026-02-01T00:00:00.%03d%dZ",
		"action":{"type":%q,"name":%q,"category":"bounded"},
		"decision":{"alternatives_considered":[{"option_id":"o","description":"d"}],"selected":"o",
			"selection_reasoning":"r","values_applied":%s%s}%s}`,
		i, rapid.IntRange(0, 20).Draw(t, "millisecond"), rapid.IntRange(0, 9).Draw(t, "fraction"),
		rapid.SampledFrom([]string{"recommend", "execute"}).Draw(t, "type"),
		rapid.SampledFrom([]string{"search", "buy", "sell"}).Draw(t, "name"), applied, confidence, escalation)
}

func compareAlerts(t *rapid.T, ours []schema.DriftAlert, theirs []DriftAlert) {
	if len(ours) != len(theirs) {
		t.Fatalf("%d alerts, the reference gives %d", len(ours), len(theirs))
	}
	for i := range ours {
		our, their := ours[i].Analysis, theirs[i].Analysis
		if our.SimilarityScore != float64(their.SimilarityScore) || string(our.DriftDirection) != their.DriftDirection ||
			our.SustainedTraces != their.SustainedTraces || our.Threshold != their.Threshold.v {
			t.Fatalf("alert %d is %+v, the reference gives %+v", i, our, their)
		}
		if got, want := fmt.Sprint(ours[i].TraceIDs), strings.NewReplacer("{", "", "}", "").Replace(fmt.Sprint(theirs[i].TraceIDs)); got != want {
			t.Fatalf("alert %d covers %v, the reference's %v", i, ours[i].TraceIDs, theirs[i].TraceIDs)
		}
		if len(our.SpecificIndicators) != len(their.SpecificIndicators) {
			t.Fatalf("alert %d measures %+v, the reference %+v", i, our.SpecificIndicators, their.SpecificIndicators)
		}
		for _, indicator := range their.SpecificIndicators {
			if !has(our.SpecificIndicators, indicator) {
				t.Fatalf("alert %d measures %+v, the reference %+v", i, our.SpecificIndicators, indicator)
			}
		}
	}
}

// has reports whether indicators contain the reference's indicator under its name in AAP
// section 8.4.
func has(indicators []schema.Indicator, want Indicator) bool {
	names := map[string][]string{
		"escalation_rate_change": {drift.EscalationRateDecrease, drift.EscalationRateIncrease},
		"similarity_trend":       {drift.SimilarityTrend},
	}
	for _, indicator := range indicators {
		for _, name := range names[want.Indicator] {
			if indicator.Indicator == name && indicator.Baseline == float64(want.Baseline) && indicator.Current == float64(want.Current) &&
				indicator.Description == want.Description {
				return true
			}
		}
	}
	return false
}

func TestValueNamesThatObjectsInherit(t *testing.T) {
	var u usage
	u.add([]string{"profit", "__proto__"})
	if got := u.undeclaredShare(nil); got != 1 {
		t.Errorf("share %v, want 1", got)
	}
	u.add([]string{"constructor"})
	if got := u.undeclaredShare(nil); got != 0 {
		t.Errorf("share %v after a value named constructor, want 0", got)
	}
}

// The arguments are converted as in JavaScript: a text is a number in a comparison and is
// concatenated in a sum, and no streak is as long as a text.
func TestDriftTakesOddThresholds(t *testing.T) {
	traces := []any{}
	for i := range 12 {
		name := "search"
		if i > 6 {
			name = "sell"
		}
		traces = append(traces, tree(t, traceJSON, "action", fmt.Sprintf(`{"type":"%s","name":"%[1]s","category":"%[1]s"}`, name)))
	}
	for _, c := range []struct {
		params DriftParams
		alerts int
		echo   string
	}{
		{DriftParams{Undefined{}, Undefined{}}, 0, ""},
		{DriftParams{0.9, Undefined{}}, 1, "0.9"},
		{DriftParams{"0.9", Undefined{}}, 1, `"0.9"`},
		{DriftParams{nil, Undefined{}}, 0, ""},
		{DriftParams{0.9, "3"}, 0, ""},
		{DriftParams{0.9, nil}, 0, ""},
		{DriftParams{0.9, true}, 0, ""},
		{DriftParams{0.9, -1.0}, 0, ""},
		{DriftParams{0.9, "Infinity"}, 0, ""},
		{DriftParams{0.9, objectOf()}, 0, ""},
		{DriftParams{0.9, 1.0}, 1, "0.9"},
	} {
		alerts, err := Drift(decoded(t, cardJSON), traces, c.params, now)
		if err != nil {
			t.Fatalf("%+v: %v", c.params, err)
		}
		if len(alerts) != c.alerts {
			t.Errorf("%+v: %d alerts, want %d", c.params, len(alerts), c.alerts)
		}
		if len(alerts) > 0 && stringify(alerts[0].Analysis.Threshold.v) != c.echo {
			t.Errorf("%+v: threshold %v, want %s", c.params, alerts[0].Analysis.Threshold, c.echo)
		}
	}
	for _, sustained := range []any{0.0, 3.5} {
		if alerts, err := Drift(decoded(t, cardJSON), traces, DriftParams{Undefined{}, sustained}, now); err == nil {
			t.Errorf("sustained %v gives %v", sustained, alerts)
		}
	}
}

// A confidence that is no number is concatenated to the sum of the baseline as text.
func TestConfidenceOfAnyKindInTheBaseline(t *testing.T) {
	for _, c := range []struct {
		confidences string
		want        float64
	}{
		{`0.5 0.25`, 0.375},
		{`"0.5"`, 0.5},        // 0 and "0.5" give "00.5"
		{`"0.5" "0.5"`, -1},   // "00.50.5" is no number
		{`true false`, 0.5},   // booleans are added
		{`[7] 1`, 71.0 / 2},   // "07" and 1 give "071"
		{`null 0.5`, 0.5 / 2}, // an absent confidence is 0
		{`{"a":1}`, -1},       // no number
	} {
		var traces []value
		for _, confidence := range strings.Fields(c.confidences) {
			traces = append(traces, value{tree(t, traceJSON, "decision.confidence", confidence), "trace"})
		}
		got := baselineOf(traces).at("confidence").number()
		if got != c.want && !(c.want < 0 && math.IsNaN(got)) {
			t.Errorf("%s: %v, want %v", c.confidences, got, c.want)
		}
	}
}

// An invalid time equals every time, so the result depends on the steps of the sorting.
func TestTracesWithoutATime(t *testing.T) {
	for _, c := range []struct{ times, want string }{
		{"2003 2001 2002", "2001 2002 2003"},
		{"2003 2002 2001", "2001 2002 2003"},
		{"2002 never 2001", "2002 never 2001"},
		{"never 2002 2001", "never 2001 2002"},
		{"2001 2003 never 2002", "2001 2003 never 2002"},
		{"2002 2003 2001 never", "2001 2002 2003 never"},
	} {
		var traces []any
		for _, at := range strings.Fields(c.times) {
			traces = append(traces, objectOf("timestamp", at))
		}
		var got []string
		for _, trace := range chronological(value{traces, "traces"}) {
			got = append(got, trace.get("timestamp").text())
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s is sorted to %v, want %s", c.times, got, c.want)
		}
	}
}

func TestLongListsAreSortedByTime(t *testing.T) {
	var traces []any
	for i := range 200 {
		traces = append(traces, objectOf("timestamp", float64(i*7919%100), "place", float64(i)))
	}
	ordered := chronological(value{traces, "traces"})
	for i := 1; i < len(ordered); i++ {
		before, after := ordered[i-1], ordered[i]
		if before.get("timestamp").number() > after.get("timestamp").number() ||
			before.get("timestamp").v == after.get("timestamp").v && before.get("place").number() > after.get("place").number() {
			t.Fatalf("%v is sorted before %v", before.v, after.v)
		}
	}
}
