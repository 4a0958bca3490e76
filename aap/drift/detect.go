package drift

import (
	"cmp"
	"slices"

	"github.com/plumbline/plumbline/schema"
)

// Detect applies AAP section 8.2 to a finished list and returns its alerts,
// never nil. It equals the published SDK: see Course.
func Detect(samples []Sample, p Params) []schema.DriftAlert {
	_, alerts := Course(samples, p)
	return alerts
}

// Course applies AAP section 8.2 to a finished list and returns the point of
// every trace, in order of time, and the alerts. The baseline's size follows
// from the length of the list (p.Window is not used), and traces are ordered by
// their time in whole milliseconds, equal times in the order given. The list
// may mix agents; an alert names the agent of its last trace.
func Course(samples []Sample, p Params) ([]Point, []schema.DriftAlert) {
	ordered := slices.Clone(samples)
	slices.SortStableFunc(ordered, byMillisecond)
	p.Window = len(samples)
	var state State
	points, alerts := make([]Point, 0, len(ordered)), []schema.DriftAlert{}
	for _, x := range ordered {
		point, alert := state.Step(x, p)
		points = append(points, point)
		if alert != nil {
			alerts = append(alerts, *alert)
		}
	}
	return points, alerts
}

func byMillisecond(a, b Sample) int {
	return cmp.Compare(a.EventTime.UnixMilli(), b.EventTime.UnixMilli())
}
