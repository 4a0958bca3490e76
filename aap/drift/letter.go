package drift

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/aap/similarity"
	"github.com/plumbline/plumbline/schema"
)

// letter is the published rule (AAP section 8.2) and its state: the first N traces form the
// baseline, and Sustained traces in a row below the threshold raise one alert.
type letter struct {
	Traces   int       // traces applied so far, including those of the baseline
	Params   Params    // of the last step
	Baseline *Baseline // nil before the first baseline
	gather   *gathering

	// Inputs of the published rules.
	Early      int                    // escalations required among the first three traces
	Late       [escalationSample]bool // escalation required, by trace number modulo three
	Values     int                    // uses of values so far
	Undeclared int                    // uses of values that the card does not declare

	Streak  int    // consecutive low traces
	Alerted bool   // the streak has raised its alert
	Low     []Low  // the streak's first traces, at most those of its alert
	Last    string // the streak's newest trace

	// In a stream, the condition that the streak's alert opened.
	ID     schema.Digest
	Opened time.Time          // event time of the trace that raised the alert
	ended  *schema.DriftAlert // closes the condition of the streak that the newest trace ended
}

// Low is one trace of a streak, compared with the baseline. Its names in JSON are short, as
// those of a Tally and of Params: a state is stored often.
type Low struct {
	TraceRef
	Similarity      float64 `json:"s"`
	NewAction       bool    `json:"a,omitempty"`  // its action type or name does not occur in the baseline
	DistinctValues  int     `json:"v,omitempty"`  // distinct values applied
	NewValues       int     `json:"nv,omitempty"` // values that do not occur in the baseline
	Reasoning       float64 `json:"r,omitempty"`
	HasReasoning    bool    `json:"hr,omitempty"` // Reasoning, the similarity of its text to the baseline's, is known
	DeclaresBenefit bool    `json:"db,omitempty"` // the card declares principal_benefit
	Tally           Tally   `json:"t"`
}

// step applies the next trace, in order of event time.
func (s *letter) step(x Sample, p Params) Outcome {
	if s.Params != p {
		// The current baseline stays, and a streak continues. Traces gathered for the next baseline
		// belong to another window and are dropped.
		s.Params = p
		if s.Baseline != nil {
			s.gather = nil
		}
	}
	if s.Traces < escalationSample && x.Escalated {
		s.Early++
	}
	s.Late[s.Traces%escalationSample] = x.Escalated
	s.Traces++
	s.Values += x.Values
	s.Undeclared += x.Undeclared
	out := Outcome{Point: Point{TraceID: x.TraceID, Digest: x.Digest, EventTime: x.EventTime, Status: StatusBaseline}}
	if s.Baseline == nil {
		if s.gather == nil {
			s.gather = new(gathering)
		}
		if s.gather.add(&x); s.gather.Tally.Traces >= p.BaselineTraces() {
			out.Formed = s.establish(&x, ModeFirst)
		}
		return out
	}
	out.Baseline = s.Baseline.ID
	out.Similarity = similarity.Cosine(x.Features, s.Baseline.Features)
	if out.Similarity < p.SimilarityThreshold {
		s.Streak++
		s.Last = x.TraceID
		if !s.Alerted { // later traces of the streak are only counted
			s.Low = append(s.Low, s.low(&x, out.Similarity))
			if s.Alerted = len(s.Low) >= p.Sustained; s.Alerted {
				out.Alert = s.alert(&x, p)
			}
		}
		out.Streak, out.Status = s.Streak, StatusLow
		if s.Alerted {
			out.Status = StatusDrift
		}
	} else {
		if s.opened() {
			s.ended = s.alert(&x, p)
			s.tell(s.ended, schema.AlertClosed)
		}
		out.Status = s.endStreak()
	}
	if p.Mode == ModeRolling {
		out.Formed = s.roll(&x, p)
	}
	return out
}

// roll gathers the last N traces of each window of W. If some of these N traces of a window
// were not seen, it forms no baseline.
func (s *letter) roll(x *Sample, p Params) *Formed {
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
func (s *letter) establish(x *Sample, mode Mode) *Formed {
	formed := s.gather.form(x.AgentID, x.CardID, mode)
	s.Baseline, s.gather = formed.Baseline, nil
	return &formed
}

// endStreak clears the streak, if there is one, and returns the status of the trace that ended
// it.
func (s *letter) endStreak() Status {
	status := StatusNormal
	if s.Alerted {
		status = StatusRecovered
	}
	s.Streak, s.Alerted, s.Low, s.Last, s.ID, s.Opened = 0, false, s.Low[:0], "", schema.Digest{}, time.Time{}
	return status
}

// low compares a trace of a streak with the baseline.
func (s *letter) low(x *Sample, score float64) Low {
	low := Low{
		TraceRef:        TraceRef{x.TraceID, x.Digest},
		Similarity:      score,
		DeclaresBenefit: x.DeclaresBenefit,
		Tally:           tallyOf(x),
	}
	isNew := func(key string) bool {
		return !slices.ContainsFunc(s.Baseline.Features, func(f similarity.Feature) bool { return f.Key == key })
	}
	for _, f := range x.Features {
		switch kind, _, _ := strings.Cut(f.Key, ":"); kind {
		case "action", "action_name":
			low.NewAction = low.NewAction || isNew(f.Key)
		case "value":
			low.DistinctValues++
			if isNew(f.Key) {
				low.NewValues++
			}
		}
	}
	low.Reasoning, low.HasReasoning = s.Baseline.Reasoning.to(x.Reasoning)
	return low
}

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
	slices.SortStableFunc(ordered, func(a, b Sample) int { return cmp.Compare(a.EventTime.UnixMilli(), b.EventTime.UnixMilli()) })
	p.Window, p.Mode = len(samples), ModeFirst
	var state letter
	points, alerts := make([]Point, 0, len(ordered)), []schema.DriftAlert{}
	for _, x := range ordered {
		step := state.step(x, p)
		points = append(points, step.Point)
		if step.Alert != nil {
			alerts = append(alerts, *step.Alert)
		}
	}
	return points, alerts
}
