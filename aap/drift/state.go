package drift

import (
	"time"

	"github.com/plumbline/plumbline/aap/similarity"
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
type State struct {
	Traces   int       // traces applied so far, including those of the baseline
	Params   Params    // of the last step
	Baseline *Baseline // nil before the first baseline
	gather   *gathering

	// Inputs of the published rules.
	Early      int                    // escalations required among the first three traces
	Late       [escalationSample]bool // escalation required, by trace number modulo three
	Values     int                    // uses of values so far
	Undeclared int                    // uses of values that the card does not declare

	Streak  int   // consecutive low traces
	Alerted bool  // the streak has raised its alert
	Low     []Low // the streak's first traces, at most those of its alert
}

// Low is one trace of a streak, compared with the baseline.
type Low struct {
	TraceRef
	Similarity      float64
	NewAction       bool // its action type or name does not occur in the baseline
	DistinctValues  int  // distinct values applied
	NewValues       int  // values that do not occur in the baseline
	Reasoning       float64
	HasReasoning    bool // Reasoning, the similarity of its text to the baseline's, is known
	DeclaresBenefit bool // the card declares principal_benefit
	Tally           Tally
}

// Step applies the next trace, in order of event time.
func (s *State) Step(x Sample, p Params) Outcome {
	if s.Params != p {
		s.change(p)
	}
	s.count(&x)
	out := Outcome{Point: Point{TraceID: x.TraceID, Digest: x.Digest, EventTime: x.EventTime, Status: StatusBaseline}}
	if s.Baseline == nil {
		out.Formed = s.learn(&x, p)
		return out
	}
	out.Baseline = s.Baseline.ID
	out.Similarity = similarity.Cosine(x.Features, s.Baseline.Features)
	if out.Similarity < p.SimilarityThreshold {
		out.Alert = s.extend(&x, out.Similarity, p)
		out.Streak, out.Status = s.Streak, StatusLow
		if s.Alerted {
			out.Status = StatusDrift
		}
	} else {
		out.Status = s.endStreak()
	}
	if p.Mode == ModeRolling {
		out.Formed = s.roll(&x, p)
	}
	return out
}

// Pin sets the baseline. It does nothing if this baseline is already effective. Another
// baseline ends the streak, which was relative to the old one.
func (s *State) Pin(b *Baseline) {
	if s.Baseline != nil && s.Baseline.ID == b.ID {
		return
	}
	s.Baseline, s.gather = b, nil
	s.endStreak()
}

// change continues under other parameters. The current baseline stays, and a streak continues.
// Traces gathered for the next baseline belong to another window and are dropped.
func (s *State) change(p Params) {
	s.Params = p
	if s.Baseline != nil {
		s.gather = nil
	}
}

// count records the inputs of the published rules for directions; it runs for every trace.
func (s *State) count(x *Sample) {
	if s.Traces < escalationSample && x.Escalated {
		s.Early++
	}
	s.Late[s.Traces%escalationSample] = x.Escalated
	s.Traces++
	s.Values += x.Values
	s.Undeclared += x.Undeclared
}

// learn adds x to the first baseline, which its N-th trace completes.
func (s *State) learn(x *Sample, p Params) *Formed {
	if s.gather == nil {
		s.gather = new(gathering)
	}
	s.gather.add(x)
	if s.gather.Tally.Traces < p.BaselineTraces() {
		return nil
	}
	return s.establish(x, ModeFirst)
}

// roll gathers the last N traces of each window of W. If some of these N traces of a window
// were not seen, it forms no baseline.
func (s *State) roll(x *Sample, p Params) *Formed {
	n, place := p.BaselineTraces(), (s.Traces-1)%p.Window+1
	if place == p.Window-n+1 {
		s.gather = new(gathering)
	}
	if s.gather == nil {
		return nil
	}
	s.gather.add(x)
	if place < p.Window {
		return nil
	}
	return s.establish(x, ModeRolling)
}

// establish makes the gathered baseline the current one.
func (s *State) establish(x *Sample, mode Mode) *Formed {
	formed := s.gather.form(x.AgentID, x.CardID, mode)
	s.Baseline, s.gather = formed.Baseline, nil
	return &formed
}

// endStreak clears the streak, if there is one, and returns the status of the trace that ended
// it.
func (s *State) endStreak() Status {
	status := StatusNormal
	if s.Alerted {
		status = StatusRecovered
	}
	s.Streak, s.Alerted, s.Low = 0, false, s.Low[:0]
	return status
}

// extend adds x to the streak and returns the alert at its sustained-th trace. Later traces of
// the streak are only counted.
func (s *State) extend(x *Sample, score float64, p Params) *schema.DriftAlert {
	s.Streak++
	if s.Alerted {
		return nil
	}
	s.Low = append(s.Low, s.low(x, score))
	if len(s.Low) < p.Sustained {
		return nil
	}
	s.Alerted = true
	return s.alert(x, p)
}

// low compares a trace of a streak with the baseline.
func (s *State) low(x *Sample, score float64) Low {
	low := Low{
		TraceRef:        TraceRef{x.TraceID, x.Digest},
		Similarity:      score,
		NewAction:       s.isNewAction(x.Features),
		DeclaresBenefit: x.DeclaresBenefit,
		Tally:           tallyOf(x),
	}
	low.DistinctValues, low.NewValues = s.values(x.Features)
	low.Reasoning, low.HasReasoning = s.Baseline.Reasoning.to(x.Reasoning)
	return low
}
