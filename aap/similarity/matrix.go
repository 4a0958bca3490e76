package similarity

import (
	"fmt"

	"github.com/plumbline/plumbline/schema"
)

// MaxMatrix is the maximum number of traces of a self-similarity matrix: 1,000 of them make a
// million cells, 8 MB.
const MaxMatrix = 1000

// Summary summarises a row of similarities in three numbers.
type Summary struct {
	Mean  float64 `json:"mean_similarity"` // four decimals; 0 for an empty row
	Min   float64 `json:"min_similarity"`  // four decimals; 0 for an empty row
	Trend float64 `json:"trend"`           // least-squares slope per trace; 0 for fewer than two
}

// Matrix is the self-similarity matrix of a session's traces: n×n cosines of their structural
// features, each rounded to four decimals. It is symmetric, and its diagonal is 1.
type Matrix struct {
	TraceIDs []string // n of them, in the order given
	cells    []float64
}

// NewMatrix compares all pairs of traces. It returns an error for more than MaxMatrix traces.
func NewMatrix(traces []*schema.Trace) (*Matrix, error) {
	n := len(traces)
	if n > MaxMatrix {
		return nil, fmt.Errorf("%d traces: a self-similarity matrix holds at most %d, because it grows by the square; "+
			"give a shorter stretch of the session", n, MaxMatrix)
	}
	m := &Matrix{TraceIDs: make([]string, n), cells: make([]float64, n*n)}
	vectors := make([]Vector, n)
	for i, t := range traces {
		m.TraceIDs[i], vectors[i] = t.TraceID, TraceFeatures(t, nil)
		m.cells[i*n+i] = 1
		for j := range i {
			s := Round4(Cosine(vectors[i], vectors[j]))
			m.cells[i*n+j], m.cells[j*n+i] = s, s
		}
	}
	return m, nil
}

// Row returns the similarities of trace i to every trace. The caller must not modify it.
func (m *Matrix) Row(i int) []float64 {
	n := len(m.TraceIDs)
	return m.cells[i*n : (i+1)*n : (i+1)*n]
}

// Summary summarises the pairs of different traces. Its trend is the slope, over i = 1..n-1, of
// the mean similarity of trace i to all previous traces. A negative trend means that the
// session moves away from its beginning.
func (m *Matrix) Summary() Summary {
	n := len(m.TraceIDs)
	if n == 1 {
		return Summary{Mean: 1, Min: 1}
	}
	pairs, toEarlier := make([]float64, 0, n*(n-1)/2), make([]float64, 0, n)
	for i := 1; i < n; i++ {
		earlier := m.Row(i)[:i]
		pairs, toEarlier = append(pairs, earlier...), append(toEarlier, Mean(earlier))
	}
	s := Summarize(pairs)
	s.Trend = slope(toEarlier)
	return s
}

// AgainstCard returns the similarity of every trace to a card, rounded to four decimals, in the
// given order.
func AgainstCard(traces []*schema.Trace, card *Card) []float64 {
	scores := make([]float64, len(traces))
	for i, t := range traces {
		scores[i] = card.Score(t)
	}
	return scores
}

// Summarize returns the mean and the minimum of similarities, and the slope over their index.
func Summarize(similarities []float64) Summary {
	if len(similarities) == 0 {
		return Summary{}
	}
	least := similarities[0]
	for _, s := range similarities {
		least = min(least, s)
	}
	return Summary{Mean: Round4(Mean(similarities)), Min: Round4(least), Trend: slope(similarities)}
}

// Mean sums in order and then divides.
func Mean(numbers []float64) float64 {
	var sum float64
	for _, n := range numbers {
		sum += n
	}
	return sum / float64(len(numbers))
}

// slope is Σ(x−x̄)(y−ȳ) / Σ(x−x̄)² over x = 0, 1, 2 …
func slope(ys []float64) float64 {
	if len(ys) < 2 {
		return 0
	}
	middle, level := float64(len(ys)-1)/2, Mean(ys)
	var above, below float64
	for i, y := range ys {
		x := float64(i) - middle
		above += x * (y - level)
		below += x * x
	}
	return above / below
}
