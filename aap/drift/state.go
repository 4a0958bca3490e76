package drift

import (
	"time"

	"github.com/plumbline/plumbline/schema"
)

// Status classifies a trace in the series of an agent's behaviour.
type Status string

// The five statuses of a point.
const (
	StatusBaseline  Status = "baseline"  // one of the first N: part of the baseline, not compared
	StatusNormal    Status = "normal"    // similar enough
	StatusLow       Status = "low"       // below the threshold, in a streak that is not sustained yet
	StatusDrift     Status = "drift"     // below the threshold, in a sustained streak
	StatusRecovered Status = "recovered" // similar enough, the first after a sustained streak
)

// Point is the state of one agent's series at one trace.
type Point struct {
	TraceID    string
	Digest     schema.Digest
	EventTime  time.Time
	Similarity float64 // to the baseline, not rounded; 0 where Status is baseline
	Status     Status
	Streak     int           // consecutive low traces up to this one
	Baseline   schema.Digest // id of the baseline compared with; zero where Status is baseline
}

// Outcome is the result of one step.
type Outcome struct {
	Point
	Alert  *schema.DriftAlert // set if the trace makes its streak sustained
	Formed *Formed            // the baseline that the trace completes, effective from the next trace on
}

// State is the series of one agent under one card so far. The zero State has seen no traces. It
// is not safe for concurrent use.
type State struct{ letter }
