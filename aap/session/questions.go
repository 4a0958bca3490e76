package session

import "time"

// Questions are what only the agent's other sessions can tell about a part.
type Questions struct {
	Numbers *NumberQuestion // nil: no number is missing
	Traces  []string        // ids that are named as prior traces and are not in the part
}

// NumberQuestion asks for the agent's traces, of whatever session, whose sequence
// number and event time lie within the ranges, ends included.
type NumberQuestion struct {
	Least, Greatest uint64
	From, To        time.Time
}

// Found is what was found: whatever is not named there does not exist.
type Found struct {
	Numbers []NumberedTrace // at most MaxNumbers
	Traces  []PriorTrace
}

// NumberedTrace is a trace of the agent that has a sequence number.
type NumberedTrace struct {
	SessionID string
	Number    uint64
	At        time.Time // its event time
}

// PriorTrace is a trace whose id was asked for.
type PriorTrace struct {
	TraceID string
	AgentID string
	At      time.Time // its event time; the earliest where there are several
}

// around widens the question about numbers: whether another session counts by
// itself shows best in what it did around the time in question.
const around = time.Hour

// lookBack is how long before a session the trace that went before it may be.
const lookBack = 24 * time.Hour

// Preceding asks for the trace that went before the session by the agent's
// counter: of the traces of its other sessions that fit, the one with the greatest
// number. It is nil where none can have: a later part goes on from the part before,
// and a counter of the session's own begins with 0 or 1.
func (j *Judge) Preceding() *NumberQuestion {
	n := &j.numbers
	if !n.last.Numbered || n.floor.Numbered || n.least.Number < 2 {
		return nil
	}
	begun := time.Unix(0, n.least.Time).UTC()
	return &NumberQuestion{Greatest: n.least.Number - 1, From: begun.Add(-lookBack), To: begun.Add(sideBySide)}
}

// Precede takes the answer to Preceding; the questions that follow rest on it.
func (j *Judge) Precede(t *NumberedTrace) { j.numbers.preceding = t }

// Questions returns what has to be found out before Finish.
func (j *Judge) Questions() Questions {
	var q Questions
	if n := &j.numbers; len(n.gaps) > 0 || n.skipped() != nil {
		from, to := min(j.earliest, n.least.Time), max(j.latest, n.last.Time)
		q.Numbers = &NumberQuestion{
			Least: n.least.Number, Greatest: n.last.Number,
			From: time.Unix(0, from).UTC().Add(-around), To: time.Unix(0, to).UTC().Add(around),
		}
	}
	for _, a := range j.priors.open() {
		q.Traces = append(q.Traces, a.id)
	}
	return q
}
