package drift

import "github.com/plumbline/plumbline/schema"

// Opened returns the event that a step reports. A rule that raises one alert for each streak knows no
// events: its alert opens with the last trace of the streak, and has no later event.
func Opened(alert *schema.DriftAlert) schema.DriftAlert {
	a := *alert
	if a.Revision == 0 {
		a.State, a.Revision = schema.AlertOpened, 1
		a.OpenedAt, a.LastTraceID, a.Count = a.DetectionTimestamp, a.TraceIDs[len(a.TraceIDs)-1], len(a.TraceIDs)
	}
	return a
}
