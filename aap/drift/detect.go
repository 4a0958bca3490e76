package drift

import (
	"cmp"
	"slices"

	"github.com/plumbline/plumbline/schema"
)

// Detect applies AAP section 8.2 to a finished list and returns its alerts. It
// equals the published SDK: the baseline's size follows from the length of the
// list (p.Window is not used), and traces are ordered by their time in whole
// milliseconds, equal times in the order given. The list may mix agents; an
// alert names the agent of its last trace.
func Detect(samples []Sample, p Params) []schema.DriftAlert {
	ordered := slices.Clone(samples)
	slices.SortStableFunc(ordered, byMillisecond)
	p.Window = len(samples)
	var state State
	alerts := []schema.DriftAlert{}
	for _, x := range ordered {
		if _, alert := state.Step(x, p); alert != nil {
			alerts = append(alerts, *alert)
		}
	}
	return alerts
}

func byMillisecond(a, b Sample) int {
	return cmp.Compare(a.EventTime.UnixMilli(), b.EventTime.UnixMilli())
}
