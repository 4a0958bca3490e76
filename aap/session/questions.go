package session

import "time"

// Questions are the questions about a part that only the agent's other sessions can answer.
type Questions struct {
	Numbers *NumberQuestion // nil if no number is missing
	Traces  []string        // ids named as prior traces that are not in the part
}

// NumberQuestion asks for the agent's traces, of any session, whose sequence number and event
// time are inside the ranges, bounds included.
type NumberQuestion struct {
	Least, Greatest uint64
	From, To        time.Time
}

// Found is the result of the look-up: anything it does not contain does not exist.
type Found struct {
	Numbers []NumberedTrace // at most MaxNumbers
	Traces  []PriorTrace
}

// NumberedTrace is a trace of the agent with a sequence number.
type NumberedTrace struct {
	SessionID string
	Number    uint64
	At        time.Time // its event time
}

// PriorTrace is a stored trace with an id that was asked for.
type PriorTrace struct {
	TraceID string
	AgentID string
	At      time.Time // its event time; the earliest where there are several
}

// around extends the time range of the question about numbers: the traces near that range show
// best whether another session has a counter of its own.
const around = time.Hour

// lookBack is how long before a session the preceding trace may be.
const lookBack = 24 * time.Hour

// Preceding asks for the trace that precedes the session by the agent's counter: among the
// matching traces of its other sessions, the one with the greatest number. It returns nil where
// there can be none: a later part continues from the previous one, and a counter of the
// session's own begins with 0 or 1.
func (j *Judge) Preceding() *NumberQuestion {
	n := &j.numbers
	if !n.last.Numbered || n.floor.Numbered || n.least.Number < 2 {
		return nil
	}
	begun := time.Unix(0, n.least.Time).UTC()
	return &NumberQuestion{Greatest: n.least.Number - 1, From: begun.Add(-lookBack), To: begun.Add(sideBySide)}
}

// Precede sets the answer to Preceding; Questions depends on it.
func (j *Judge) Precede(t *NumberedTrace) { j.numbers.preceding = t }

// Questions returns the questions to answer before Finish.
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
