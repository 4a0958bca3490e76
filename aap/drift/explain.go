package drift

import (
	"fmt"

	"github.com/plumbline/plumbline/schema"
)

// Explanation says where a series stands, and why it is or is not an alert.
type Explanation struct {
	Traces    int // applied so far
	Params    Params
	Baseline  *Baseline        // nil while it is learned
	Streak    int              // low traces in a row
	Alerted   bool             // the streak has raised its alert
	Low       []Low            // the streak's first traces, as many as its alert names
	Why       string           // why there is or is not an alert, one sentence
	Direction schema.Direction // that the streak has, or would have; empty without one
	Measures  []Measure        // in the order in which the direction is decided
}

// Explain returns what the state knows. What it returns is not to be changed.
func (s *State) Explain() Explanation {
	e := Explanation{
		Traces: s.Traces, Params: s.Params, Baseline: s.Baseline,
		Streak: s.Streak, Alerted: s.Alerted, Low: s.Low, Why: s.why(), Measures: s.Measures(),
	}
	if len(s.Low) > 0 {
		e.Direction, _ = s.judge(s.Params.Profile)
	}
	return e
}

func (s *State) why() string {
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
