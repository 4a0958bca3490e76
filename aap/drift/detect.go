package drift

import (
	"cmp"
	"slices"

	"github.com/plumbline/plumbline/schema"
)

// Detect applies AAP section 8.2 to a finished list and returns its alerts, never nil: see
// Series. Under ProfileReference they equal those of the published SDK; under ProfileSpec
// direction and indicators follow section 8.5.
func Detect(samples []Sample, p Params) []schema.DriftAlert {
	_, alerts := Series(samples, p)
	return alerts
}

// Series applies AAP section 8.2 to a finished list. It returns the point of every trace, in
// order of time, and the alerts. The first N traces form the baseline; N follows from the
// length of the list, and p.Window and p.Mode are not used. Traces are ordered by their time in
// whole milliseconds, and traces of equal time stay in the given order. The list may mix
// agents; an alert names the agent of its last trace.
func Series(samples []Sample, p Params) ([]Point, []schema.DriftAlert) {
	ordered := slices.Clone(samples)
	slices.SortStableFunc(ordered, byMillisecond)
	p.Window, p.Mode = len(samples), ModeFirst
	var state State
	points, alerts := make([]Point, 0, len(ordered)), []schema.DriftAlert{}
	for _, x := range ordered {
		step := state.Step(x, p)
		points = append(points, step.Point)
		if step.Alert != nil {
			alerts = append(alerts, *step.Alert)
		}
	}
	return points, alerts
}

func byMillisecond(a, b Sample) int {
	return cmp.Compare(a.EventTime.UnixMilli(), b.EventTime.UnixMilli())
}
