package drift

import (
	"time"

	"github.com/plumbline/plumbline/aap/similarity"
	"github.com/plumbline/plumbline/schema"
)

// Status is where a trace stands in the course of an agent's behaviour.
type Status string

// The five statuses of a point.
const (
	StatusBaseline  Status = "baseline"  // one of the first N: forms the baseline, is not compared
	StatusNormal    Status = "normal"    // similar enough
	StatusLow       Status = "low"       // below the threshold, in a streak that is not yet sustained
	StatusDrift     Status = "drift"     // below the threshold, in a sustained streak
	StatusRecovered Status = "recovered" // similar enough again, first after a sustained streak
)

// Point is the course of one agent at one trace.
type Point struct {
	TraceID    string
	Digest     schema.Digest
	EventTime  time.Time
	Similarity float64 // to the baseline, not rounded; 0 while Status is baseline
	Status     Status
	Streak     int // low traces in a row up to this one
}

// State is the course of one agent under one card so far. The zero State is one
// that has seen nothing. It is not safe for concurrent use.
type State struct {
	Traces   int // applied so far, baseline included
	Frozen   bool
	Baseline similarity.Vector // the sum of the first traces; their centroid once Frozen

	Early      int                    // escalations required among the first three traces
	Late       [escalationSample]bool // escalation required, by trace number modulo three
	Values     int                    // uses of values so far
	Undeclared int                    // those of them that the card does not declare

	BaselineTally Tally // of the baseline's traces
	Streak        int   // low traces in a row
	Alerted       bool  // the streak has raised its alert
	Low           []Low // the streak's traces until its alert
}

// Tally sums what the indicators of AAP section 8.5 compare.
type Tally struct {
	Values     int     // uses of values
	Undeclared int     // those that the card does not declare
	Benefit    float64 // sum of principal_benefit
	Benefits   int     // traces that carry one
}

// Low is one trace of a streak.
type Low struct {
	TraceID    string
	Digest     schema.Digest
	Similarity float64
	Confidence float64
	NewAction  bool // its action type or name does not occur in the baseline
	Tally      Tally
}

// Step applies the next trace, in order of event time, and returns its point,
// and the alert if the trace makes its streak sustained.
func (s *State) Step(x Sample, p Params) (Point, *schema.DriftAlert) {
	s.count(x)
	point := Point{TraceID: x.TraceID, Digest: x.Digest, EventTime: x.EventTime, Status: StatusBaseline}
	if !s.Frozen {
		s.learn(x, p)
		return point, nil
	}
	point.Similarity = similarity.Cosine(x.Features, s.Baseline)
	if !(point.Similarity < p.SimilarityThreshold) {
		point.Status = s.endStreak()
		return point, nil
	}
	alert := s.extend(x, point.Similarity, p)
	point.Streak = s.Streak
	point.Status = StatusLow
	if s.Alerted {
		point.Status = StatusDrift
	}
	return point, alert
}

// count keeps what directions are inferred from: it covers every trace.
func (s *State) count(x Sample) {
	if s.Traces < escalationSample && x.Escalated {
		s.Early++
	}
	s.Late[s.Traces%escalationSample] = x.Escalated
	s.Traces++
	s.Values += x.Values
	s.Undeclared += x.Undeclared
}

// learn adds x to the baseline and freezes it at its N-th trace.
func (s *State) learn(x Sample, p Params) {
	s.Baseline = similarity.Add(s.Baseline, x.Features)
	s.BaselineTally.add(tallyOf(x))
	if s.Traces >= p.BaselineTraces() {
		s.Baseline = similarity.Centroid(s.Baseline, s.Traces)
		s.Frozen = true
	}
}

// endStreak forgets the streak, if there is one, and tells what the trace that ended it is.
func (s *State) endStreak() Status {
	status := StatusNormal
	if s.Alerted {
		status = StatusRecovered
	}
	s.Streak, s.Alerted, s.Low = 0, false, s.Low[:0]
	return status
}

// extend adds x to the streak and returns the alert at its sustained-th trace.
// Later traces of the streak are counted only.
func (s *State) extend(x Sample, score float64, p Params) *schema.DriftAlert {
	s.Streak++
	if s.Alerted {
		return nil
	}
	s.Low = append(s.Low, Low{
		TraceID:    x.TraceID,
		Digest:     x.Digest,
		Similarity: score,
		Confidence: x.Confidence,
		NewAction:  s.isNewAction(x.Features),
		Tally:      tallyOf(x),
	})
	if len(s.Low) < p.Sustained {
		return nil
	}
	alert := s.alert(x, p)
	s.Alerted, s.Low = true, s.Low[:0]
	return alert
}

func tallyOf(x Sample) Tally {
	t := Tally{Values: x.Values, Undeclared: x.Undeclared}
	if x.HasBenefit {
		t.Benefit, t.Benefits = x.Benefit, 1
	}
	return t
}

func (t *Tally) add(o Tally) {
	t.Values += o.Values
	t.Undeclared += o.Undeclared
	t.Benefit += o.Benefit
	t.Benefits += o.Benefits
}
