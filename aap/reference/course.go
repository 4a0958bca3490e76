package reference

import "math"

// TraceCourse holds the similarities of a list of traces to its baseline.
type TraceCourse struct {
	Baseline     Number   `json:"baseline"` // N: the number of traces that form it, if there are enough
	Order        []Echo   `json:"order"`    // trace ids in order of time
	Similarities []Number `json:"similarities"`
}

// TraceSimilarities returns the similarity of every trace after the baseline to the baseline.
func TraceSimilarities(traces any, p DriftParams) (c TraceCourse, err error) {
	defer catch(&err)
	ordered := chronological(value{traces, "traces"})
	size := baselineSize(len(ordered), p.sustained())
	n := min(len(ordered), windowOf(size))
	c = TraceCourse{Baseline: Number(size), Order: []Echo{}, Similarities: []Number{}}
	baseline := baselineOf(ordered[:n])
	for i, trace := range ordered {
		c.Order = append(c.Order, trace.get("trace_id").echoOrEmpty())
		if i >= n {
			c.Similarities = append(c.Similarities, Number(cosine(traceFeatures(trace), baseline)))
		}
	}
	return c, nil
}

// baselineSize returns N for a list of n traces; it may not be a whole number.
func baselineSize(n int, sustained value) float64 {
	return math.Max(sustained.number(), math.Min(10, math.Floor(float64(n)/4)))
}

// windowOf returns the number of traces that a baseline of that size uses.
func windowOf(size float64) int {
	if math.IsNaN(size) {
		return 0
	}
	return int(math.Min(size, math.MaxInt32))
}
