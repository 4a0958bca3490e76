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

// Questions returns what has to be found out before Finish.
func (j *Judge) Questions() Questions {
	var q Questions
	if n := &j.numbers; len(n.gaps) > 0 {
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
