package drift

import (
	"time"

	"github.com/plumbline/plumbline/aap/similarity"
	"github.com/plumbline/plumbline/schema"
)

// Status is where a trace stands in the series of an agent's behaviour.
type Status string

// The five statuses of a point.
const (
	StatusBaseline  Status = "baseline"  // one of the first N: forms the baseline, is not compared
	StatusNormal    Status = "normal"    // similar enough
	StatusLow       Status = "low"       // below the threshold, in a streak that is not yet sustained
	StatusDrift     Status = "drift"     // below the threshold, in a sustained streak
	StatusRecovered Status = "recovered" // similar enough again, first after a sustained streak
)

// Point is the series of one agent at one trace.
type Point struct {
	TraceID    string
	Digest     schema.Digest
	EventTime  time.Time
	Similarity float64 // to the baseline, not rounded; 0 while Status is baseline
	Status     Status
	Streak     int           // low traces in a row up to this one
	Baseline   schema.Digest // id of the baseline compared with; zero while Status is baseline
}

// Outcome is what one step comes to.
type Outcome struct {
	Point
	Alert  *schema.DriftAlert // where the trace makes its streak sustained
	Formed *Formed            // the baseline that the trace completes, in force from the next trace on
}

// State is the series of one agent under one card so far. The zero State is one
// that has seen nothing. It is not safe for concurrent use.
type State struct {
	Traces   int       // applied so far, those of the baseline included
	Params   Params    // of the last step
	Baseline *Baseline // nil before the first one
	gather   *gathering

	// What the published rules look at.
	Early      int                    // escalations required among the first three traces
	Late       [escalationSample]bool // escalation required, by trace number modulo three
	Values     int                    // uses of values so far
	Undeclared int                    // those of them that the card does not declare

	Streak  int   // low traces in a row
	Alerted bool  // the streak has raised its alert
	Low     []Low // the streak's first traces, those of its alert at most
}

// Low is one trace of a streak, measured against the baseline.
type Low struct {
	TraceRef
	Similarity      float64
	NewAction       bool // its action type or name does not occur in the baseline
	DistinctValues  int  // values applied, each once
	NewValues       int  // those that do not occur in the baseline
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

// Pin sets the baseline. One that is in force already changes nothing; another
// ends the streak, which was one against the old baseline.
func (s *State) Pin(b *Baseline) {
	if s.Baseline != nil && s.Baseline.ID == b.ID {
		return
	}
	s.Baseline, s.gather = b, nil
	s.endStreak()
}

// change goes on under other parameters. The baseline in force stays in force,
// and a streak goes on; what is gathered for a next baseline is another
// window's, and is dropped.
func (s *State) change(p Params) {
	s.Params = p
	if s.Baseline != nil {
		s.gather = nil
	}
}

// count keeps what the published rules infer directions from: it covers every trace.
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

// roll gathers the last N traces of each W. A window that was not seen from the
// beginning of its last N on forms nothing.
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

// establish puts what is gathered in force.
func (s *State) establish(x *Sample, mode Mode) *Formed {
	formed := s.gather.form(x.AgentID, x.CardID, mode)
	s.Baseline, s.gather = formed.Baseline, nil
	return &formed
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

// low measures a trace of a streak.
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
