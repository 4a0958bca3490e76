package similarity

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/schema/published"
)

// vector is a case of the published reference, with the members used here.
type vector struct {
	ID       string          `json:"id"`
	Op       string          `json:"op"`
	Trace    json.RawMessage `json:"trace"`
	Expected struct {
		OK     bool `json:"ok"`
		Result struct {
			Trace map[string]float64 `json:"trace"`
		} `json:"result"`
	} `json:"expected"`
}

func vectors(t *testing.T) []vector {
	t.Helper()
	var out []vector
	for _, line := range published.Lines(t, "conformance/aap/cases.jsonl") {
		var v vector
		if json.Unmarshal(line, &v) == nil && v.Expected.OK { // results of other operations have other types
			out = append(out, v)
		}
	}
	return out
}

// The features of traces equal those of the public SDK.
func TestFeaturesOfPublishedRecords(t *testing.T) {
	compared := 0
	for _, v := range vectors(t) {
		if v.Op != "features" {
			continue
		}
		if trace, err := schema.Admit("", v.Trace); err == nil && v.Expected.Result.Trace != nil {
			compared++
			compareFeatures(t, v.ID, TraceFeatures(trace, nil), v.Expected.Result.Trace)
		}
	}
	if compared == 0 {
		t.Error("no case was compared")
	}
}

func compareFeatures(t *testing.T, id string, got Vector, want map[string]float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d features, want %d: %v", id, len(got), len(want), got)
	}
	for _, f := range got {
		if weight, ok := want[f.Key]; !ok || weight != f.Weight {
			t.Errorf("%s: %s has weight %v, want %v", id, f.Key, f.Weight, weight)
		}
	}
}

func TestTraceFeaturesInOrder(t *testing.T) {
	trace := &schema.Trace{
		Action:     schema.Action{Type: schema.ActionExecute, Name: "buy", Category: schema.CategoryBounded},
		Decision:   schema.Decision{ValuesApplied: []string{"honesty", "privacy", "honesty"}, Confidence: 0.25, HasConfidence: true},
		Escalation: schema.Escalation{Present: true, Evaluated: true},
	}
	got := fmt.Sprint(TraceFeatures(trace, make(Vector, 3)))
	const want = "[{action:execute 1} {category:bounded 1} {action_name:buy 1} {value:honesty 1} {value:privacy 1} " +
		"{escalation:evaluated 1} {escalation:not_required 1} {confidence 0.25}]"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	trace.Escalation, trace.Decision.HasConfidence = schema.Escalation{}, false
	if got := TraceFeatures(trace, nil); len(got) != 5 {
		t.Errorf("without escalation block and confidence: %v", got)
	}
	trace.Escalation = schema.Escalation{Present: true, Required: true}
	if got := TraceFeatures(trace, nil); got[len(got)-1].Key != "escalation:required" {
		t.Errorf("with a required escalation: %v", got)
	}
}

// A trace has one feature for each distinct value that it applies, whatever the number, length
// or repetition of the values. The features are in the order of first appearance.
func TestEachValueIsOneFeature(t *testing.T) {
	for _, n := range []int{scanLimit / 2, scanLimit, scanLimit + 1, 10 * scanLimit} {
		values, want := []string{"0"}, Vector{}
		for i := range n {
			value := strings.Repeat(fmt.Sprint(i), 1+i)
			values, want = append(values, value, values[0], value), append(want, Feature{"value:" + value, 1})
		}
		name := strings.Repeat("a", 1000)
		want = append(Vector{{"action:execute", 1}, {"category:bounded", 1}, {"action_name:" + name, 1}}, want...)
		trace := &schema.Trace{Action: schema.Action{Type: schema.ActionExecute, Category: schema.CategoryBounded, Name: name}}
		trace.Decision.ValuesApplied = values
		if got := TraceFeatures(trace, nil); !slices.Equal(got, want) {
			t.Errorf("%d values: %v", n, got)
		}
	}
}

// anyTrace draws a trace with few possible names, so it often shares some with a card.
func anyTrace(t *rapid.T, label string) *schema.Trace {
	names := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"})
	return &schema.Trace{
		Action: schema.Action{Type: schema.ActionExecute, Name: names.Draw(t, label+"name"), Category: schema.CategoryBounded},
		Decision: schema.Decision{
			ValuesApplied: rapid.SliceOfN(names, 0, 40).Draw(t, label+"values"),
			Confidence:    rapid.Float64Range(0, 1).Draw(t, label+"confidence"), HasConfidence: rapid.Bool().Draw(t, label+"has"),
		},
		Escalation: schema.Escalation{Present: rapid.Bool().Draw(t, label+"block"), Evaluated: rapid.Bool().Draw(t, label+"evaluated")},
	}
}

func TestCentroidOfLongAndShortVectors(t *testing.T) {
	var long Vector
	for i := range 3 * scanLimit {
		long = append(long, Feature{fmt.Sprint("k", i), 1})
	}
	short := Vector{{"k1", 1}, {"new", 3}}
	got := Centroid(Add(Add(nil, long), short), 2)
	if len(got) != len(long)+1 || got[0].Weight != 0.5 || got[1].Weight != 1 || got[len(got)-1] != (Feature{"new", 1.5}) {
		t.Errorf("got %v", got)
	}
	if compact := Compact(got); !slices.Equal(compact, got) || cap(compact) != len(got) {
		t.Errorf("compact %v", compact)
	}
	for _, v := range []Vector{long, short} {
		if c := Cosine(v, slices.Clone(v)); math.Abs(c-1) > 1e-12 {
			t.Errorf("a vector has cosine %v with itself", c)
		}
	}
	if c := Cosine(long, nil); c != 0 {
		t.Errorf("cosine with an empty vector is %v", c)
	}
}

func TestRound4TiesUp(t *testing.T) {
	for x, want := range map[float64]float64{0.00005: 0.0001, 0.36424: 0.3642, 0.36425: 0.3643, 1: 1, 0: 0} {
		if got := Round4(x); got != want {
			t.Errorf("Round4(%v) = %v, want %v", x, got, want)
		}
	}
}

func BenchmarkScore(b *testing.B) {
	trace, card := benchmarkPair()
	compiled := NewCard(card)
	b.ReportAllocs()
	for b.Loop() {
		compiled.Score(trace)
	}
}

func BenchmarkTraceFeatures(b *testing.B) {
	trace, _ := benchmarkPair()
	var v Vector
	b.ReportAllocs()
	for b.Loop() {
		v = TraceFeatures(trace, v)
	}
}

func benchmarkPair() (*schema.Trace, *schema.Card) {
	values := []string{"principal_benefit", "transparency", "honesty"}
	return &schema.Trace{
		Action:     schema.Action{Type: schema.ActionExecute, Name: "search", Category: schema.CategoryBounded},
		Decision:   schema.Decision{ValuesApplied: values, Confidence: 0.9, HasConfidence: true},
		Escalation: schema.Escalation{Present: true, Evaluated: true},
	}, &schema.Card{Values: schema.Values{Declared: values}, Autonomy: schema.Autonomy{BoundedActions: []string{"search", "compare"}}}
}
