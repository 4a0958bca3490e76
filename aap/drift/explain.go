package drift

import (
	"fmt"

	"github.com/plumbline/plumbline/schema"
)

// Explanation describes the state of a series, and why it has an alert or not.
type Explanation struct {
	Traces    int // traces applied so far
	Params    Params
	Baseline  *Baseline        // nil until the first N traces are complete
	Streak    int              // low traces in a row
	Alerted   bool             // the streak has raised its alert
	Low       []Low            // the streak's first traces, as many as its alert lists
	Why       string           // why there is an alert or not, in one sentence
	Direction schema.Direction // direction of the streak's alert, also before the alert; empty without a streak
	Measures  []Measure        // in the order in which they decide the direction
}

// Explain returns an explanation of the state. The caller must not modify it.
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
