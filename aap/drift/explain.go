package drift

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/schema"
)

// Explanation describes the state of a series, and why it has an alert or not.
type Explanation struct {
	Traces    int // traces applied so far
	Params    Params
	Baseline  *Baseline        // nil until it is complete; without features and texts where it is of sessions
	Streak    int              // low traces in a row
	Alerted   bool             // the streak has raised its alert, or a condition is open
	Low       []Low            // the streak's traces that its alert lists
	Why       string           // why there is an alert or not, in one sentence
	Direction schema.Direction // of the alert, also before it under the published rule; empty without one
	Measures  []Measure        // under the published rule: in the order in which they decide the direction
	Evidence  []Evidence       // under modes sessions and pinned: each test
	Sessions  int              // complete sessions, while a baseline of sessions is learned
}

// Evidence is what one test of a measure has found.
type Evidence struct {
	Name           string  // as in an alert's Measures
	Strength       float64 // decimal logarithm of the evidence over its limit: an alarm at 0
	BaselineEvents int     // what the baseline showed
	BaselineOf     int
	Events, Of     int  // since the change began, if there is one
	Joined         bool // the test is in the open condition
}

// Explain returns an explanation of the state. The caller must not modify it.
func (s *State) Explain() Explanation {
	if s.letter != nil {
		return s.letter.explain()
	}
	e := Explanation{Traces: s.Traces, Params: s.Params, Streak: s.Streak, Alerted: s.open != nil, Why: s.why()}
	if s.expected == nil {
		e.Sessions = s.learning.complete()
		return e
	}
	e.Baseline = &Baseline{ID: s.expected.ID, Mode: s.expected.Mode, Content: Content{Tally: Tally{
		Traces: s.expected.Traces, Escalated: int(s.expected.shares[escalations].events),
	}, Reasoning: Reasoning{Texts: int(s.expected.shares[wording].of)}}}
	lowest := &s.detector.examples[streak]
	if lasting := s.open.examples(streak); lasting != nil {
		lowest = lasting
	}
	for i, id := range s.detector.ids(*lowest) {
		e.Low = append(e.Low, Low{TraceRef: TraceRef{TraceID: id}, Similarity: lowest[i].similarity()})
	}
	for t := range s.detector.tests {
		e.Evidence = append(e.Evidence, s.evidence(test(t)))
	}
	if s.open != nil {
		e.Direction = s.direction(s.open)
	}
	return e
}

func (s *State) evidence(t test) Evidence {
	m, _ := t.of()
	r, base := &s.detector.tests[t], s.expected.shares[m]
	most := limit(t.share(len(s.detector.tests)), s.Params.FalseAlarms)
	return Evidence{
		Name: s.name(t), Strength: math.Log10(max(r.sum(), 1) / most), BaselineEvents: int(base.events), BaselineOf: int(base.of),
		Events: int(r.events), Of: int(r.of), Joined: s.open != nil && s.open.has(t),
	}
}

func (s *State) why() string {
	switch {
	case s.open != nil:
		return "An alert is open. " + s.summary(s.open, schema.AlertUpdated)
	case s.expected == nil:
		traces := 0
		if s.learning != nil {
			traces = len(s.learning.traces)
		}
		return fmt.Sprintf("No alert: the baseline is being learned, %d of its %d sessions are complete, with %d traces so far, and nothing is compared before.",
			s.learning.complete(), s.Params.Sessions, traces)
	case s.Streak > 0:
		return fmt.Sprintf("No alert: the last %d were below %g in a row. It takes %d, of at least %d sessions. No measure is at its limit.",
			s.Streak, s.Params.SimilarityThreshold, s.expected.sustained(s.Params), s.Params.StreakSessions)
	}
	return fmt.Sprintf("No alert: the last trace was at least %g similar to the baseline, and no measure is at its limit.", s.Params.SimilarityThreshold)
}

func (s *letter) explain() Explanation {
	e := Explanation{
		Traces: s.Traces, Params: s.Params, Baseline: s.Baseline,
		Streak: s.Streak, Alerted: s.Alerted, Low: s.Low, Why: s.why(), Measures: s.Measures(),
	}
	if len(s.Low) > 0 {
		e.Direction, _ = s.judge(s.Params.Profile)
	}
	return e
}

func (s *letter) why() string {
	switch {
	case s.Baseline == nil:
		gathered := 0
		if s.gather != nil {
			gathered = s.gather.Tally.Traces
		}
		return fmt.Sprintf("No alert: the baseline is being learned, %d of its %d traces have come, and nothing is compared before.",
			gathered, s.Params.BaselineTraces())
	case s.Streak == 0:
		return fmt.Sprintf("No alert: the last trace was at least %g similar to the baseline, so there is no streak.", s.Params.SimilarityThreshold)
	case !s.Alerted:
		return fmt.Sprintf("No alert: the last %d were below %g in a row, and it takes %d.", s.Streak, s.Params.SimilarityThreshold, s.Params.Sustained)
	}
	return fmt.Sprintf("An alert: the last %d were below %g in a row. It was raised at number %d of the streak, and one streak raises one.",
		s.Streak, s.Params.SimilarityThreshold, max(len(s.Low), 1))
}
