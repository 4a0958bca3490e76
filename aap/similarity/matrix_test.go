package similarity

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/plumbline/plumbline/schema"
)

// session returns one trace for each letter, which is its action's name; everything else is the
// same.
func session(letters string) (traces []*schema.Trace) {
	for i, letter := range letters {
		traces = append(traces, &schema.Trace{
			TraceID: string(rune('0' + i)),
			Action:  schema.Action{Type: schema.ActionExecute, Name: string(letter), Category: schema.CategoryBounded},
		})
	}
	return traces
}

func matrixOf(t *testing.T, letters string) *Matrix {
	t.Helper()
	m, err := NewMatrix(session(letters))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMatrixByHand(t *testing.T) {
	m := matrixOf(t, "aab") // two of three features are shared: 2/3
	for i, want := range [][]float64{{1, 1, 0.6667}, {1, 1, 0.6667}, {0.6667, 0.6667, 1}} {
		if !slices.Equal(m.Row(i), want) {
			t.Errorf("row %d is %v, want %v", i, m.Row(i), want)
		}
	}
	if !slices.Equal(m.TraceIDs, []string{"0", "1", "2"}) {
		t.Errorf("traces %v", m.TraceIDs)
	}
	// The pairs are 1, 2/3 and 2/3. Trace 1 has mean similarity 1 to the previous traces, trace
	// 2 has 2/3.
	if got := m.Summary(); got.Mean != 0.7778 || got.Min != 0.6667 || math.Abs(got.Trend+0.3333) > 1e-12 {
		t.Errorf("summary %+v", got)
	}
}

func TestMatrixOfLittle(t *testing.T) {
	if got := matrixOf(t, "").Summary(); got != (Summary{}) {
		t.Errorf("of nothing: %+v", got)
	}
	if got := matrixOf(t, "a").Summary(); got != (Summary{Mean: 1, Min: 1}) {
		t.Errorf("of one trace: %+v", got)
	}
	if got := matrixOf(t, "ab").Summary(); got.Trend != 0 || got.Min != 0.6667 {
		t.Errorf("of two traces: %+v", got)
	}
}

func TestMatrixIsSymmetric(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var traces []*schema.Trace
		for range rapid.IntRange(0, 12).Draw(t, "traces") {
			traces = append(traces, anyTrace(t, "trace"))
		}
		m, err := NewMatrix(traces)
		if err != nil {
			t.Fatal(err)
		}
		for i := range traces {
			for j := range traces {
				if m.Row(i)[j] != m.Row(j)[i] || i == j && m.Row(i)[j] != 1 {
					t.Fatalf("cells %d,%d: %v and %v", i, j, m.Row(i)[j], m.Row(j)[i])
				}
				if c := Round4(Cosine(TraceFeatures(traces[j], nil), TraceFeatures(traces[i], nil))); i != j && math.Abs(m.Row(i)[j]-c) > 1e-4 {
					t.Fatalf("cell %d,%d is %v, the cosine %v", i, j, m.Row(i)[j], c)
				}
			}
		}
	})
}

func TestLargestMatrix(t *testing.T) {
	if _, err := NewMatrix(session(strings.Repeat("ab", MaxMatrix/2))); err != nil {
		t.Error(err)
	}
	_, err := NewMatrix(session(strings.Repeat("a", MaxMatrix+1)))
	if err == nil || !strings.Contains(err.Error(), "1001 traces: a self-similarity matrix holds at most 1000") {
		t.Errorf("error %v", err)
	}
}

func TestAgainstCard(t *testing.T) {
	card := NewCard(&schema.Card{Autonomy: schema.Autonomy{BoundedActions: []string{"a"}}})
	scores := AgainstCard(session("aabb"), card)
	if len(scores) != 4 || scores[0] == 0 || scores[0] != scores[1] || scores[2] != 0 {
		t.Fatalf("scores %v", scores)
	}
	high := scores[0]
	got := Summarize(scores)
	if got.Min != 0 || got.Mean != Round4(high/2) || math.Abs(got.Trend+0.4*high) > 1e-12 {
		t.Errorf("summary %+v of %v", got, scores)
	}
}
