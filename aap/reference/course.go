package reference

import (
	"math"

	"github.com/plumbline/plumbline/aap/similarity"
)

// TraceCourse is the course of similarities to the baseline over a list.
type TraceCourse struct {
	Baseline     int       `json:"baseline"` // number of traces that form it
	Order        []any     `json:"order"`    // trace ids in order of time
	Similarities []float64 `json:"similarities"`
}

// TraceSimilarities returns every later trace's similarity to the baseline.
func TraceSimilarities(traces any, p DriftParams) (c TraceCourse, err error) {
	defer catch(&err)
	ordered := chronological(value{traces, "traces"})
	n := int(math.Min(float64(len(ordered)), math.Max(0, baselineSize(len(ordered), p.sustained()))))
	c = TraceCourse{Baseline: n, Order: []any{}, Similarities: []float64{}}
	baseline := baselineOf(ordered[:n])
	for i, trace := range ordered {
		c.Order = append(c.Order, trace.get("trace_id").orEmpty())
		if i >= n {
			c.Similarities = append(c.Similarities, similarity.Cosine(traceFeatures(trace), baseline))
		}
	}
	return c, nil
}

// baselineSize returns N for a list of n traces.
func baselineSize(n int, sustained float64) float64 {
	return math.Max(sustained, math.Min(10, math.Floor(float64(n)/4)))
}

// baselineOf returns the centroid of traces.
func baselineOf(traces []value) similarity.Vector {
	var sum similarity.Vector
	for _, trace := range traces {
		sum = similarity.Add(sum, traceFeatures(trace))
	}
	return similarity.Centroid(sum, len(traces))
}
