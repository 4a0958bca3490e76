package reference

import "math"

// TraceCourse is the course of similarities to the baseline over a list.
type TraceCourse struct {
	Baseline     Number   `json:"baseline"` // N: how many traces form it, where there are as many
	Order        []Echo   `json:"order"`    // trace ids in order of time
	Similarities []Number `json:"similarities"`
}

// TraceSimilarities returns every later trace's similarity to the baseline.
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

// baselineSize returns N for a list of n traces; it need be no whole number.
func baselineSize(n int, sustained value) float64 {
	return math.Max(sustained.number(), math.Min(10, math.Floor(float64(n)/4)))
}

// windowOf returns how many traces a baseline of that size takes from a list.
func windowOf(size float64) int {
	if math.IsNaN(size) {
		return 0
	}
	return int(math.Min(size, math.MaxInt32))
}
