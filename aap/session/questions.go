package session

import (
	"fmt"
	"slices"
	"time"

	"github.com/plumbline/plumbline/schema"
)

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

// Answers are the results of the questions. They are bounded, and sufficient to compute the
// same verdict again after the stored traces have changed.
type Answers struct {
	Missing []Range `json:"missing,omitempty"` // numbers that no trace has
	More    int     `json:"more,omitempty"`    // number of further missing ranges
	Skipped *Range  `json:"skipped,omitempty"` // numbers between the agent's previous session and this one
	Partial bool    `json:"partial,omitempty"` // there were at least MaxNumbers numbered traces, possibly more
	Priors  string  `json:"priors,omitempty"`  // one letter for each id asked for, in order
}

// The letters of Answers.Priors.
const (
	priorThere   = "."
	priorMissing = "m"
	priorForeign = "f" // only other agents have it
	priorLater   = "l" // it is later than the trace that names it
)

// sideBySide is the tolerance between numbers and times: parallel sessions of one agent take a
// number and a time in two separate steps.
const sideBySide = time.Second

// Answers returns the answers that follow from the stored traces that were found.
func (j *Judge) Answers(f Found) Answers {
	answers := Answers{Partial: len(f.Numbers) >= MaxNumbers}
	apart := j.apart(f.Numbers)
	missing := subtract(j.numbers.gaps, j.fitting(f.Numbers, apart))
	if before := j.numbers.preceding; before != nil && !apart[before.SessionID] {
		answers.Skipped = j.numbers.skipped()
	}
	answers.Missing = missing[:min(len(missing), maxMissing)]
	answers.More = len(missing) - len(answers.Missing)
	places := map[string]*PriorTrace{}
	for i := range f.Traces {
		t := &f.Traces[i]
		if other := places[t.TraceID]; other == nil || t.AgentID == j.head.AgentID && (other.AgentID != t.AgentID || t.At.Before(other.At)) {
			places[t.TraceID] = t
		}
	}
	for _, a := range j.priors.open() {
		letter := priorThere
		switch there := places[a.id]; {
		case there == nil:
			letter = priorMissing
		case there.AgentID != j.head.AgentID:
			letter = priorForeign
		case there.At.UnixNano() > a.at.Time:
			letter = priorLater
		}
		answers.Priors += letter
	}
	return answers
}

// apart returns the other sessions with a counter of their own: they have a number that this
// session has as well.
func (j *Judge) apart(traces []NumberedTrace) map[string]bool {
	apart, n := map[string]bool{}, &j.numbers
	for i := range traces {
		t := &traces[i]
		held := t.Number >= n.least.Number && t.Number <= n.last.Number && n.find(t.Number) < 0
		if held && t.SessionID != j.head.SessionID {
			apart[t.SessionID] = true
		}
	}
	return apart
}

// fitting returns, in ascending order, the missing numbers that other traces of the agent have:
// traces of other parts of this session, and traces of sessions with the same counter whose time
// is between those of the gap's neighbours.
func (j *Judge) fitting(traces []NumberedTrace, apart map[string]bool) (filled []uint64) {
	for i := range traces {
		t := &traces[i]
		at := j.numbers.find(t.Number)
		if at < 0 || apart[t.SessionID] {
			continue
		}
		g := &j.numbers.gaps[at]
		low, high := min(g.after, g.before), max(g.after, g.before)
		between := !t.At.Before(time.Unix(0, low).Add(-sideBySide)) && !t.At.After(time.Unix(0, high).Add(sideBySide))
		if t.SessionID == j.head.SessionID || between {
			filled = append(filled, t.Number)
		}
	}
	slices.Sort(filled)
	return slices.Compact(filled)
}

// subtract removes ascending numbers from ascending gaps.
func subtract(gaps []gap, filled []uint64) (missing []Range) {
	for _, g := range gaps {
		r := g.Range
		for len(filled) > 0 && filled[0] <= g.To {
			n := filled[0]
			filled = filled[1:]
			if n > r.From {
				missing = append(missing, Range{r.From, n - 1})
			}
			r.From = n + 1
		}
		if r.From <= r.To {
			missing = append(missing, r)
		}
	}
	return missing
}

// answered adds the findings that follow from the answers.
func (j *Judge) answered(f *findings, answers *Answers) (unchecked []string) {
	if answers == nil {
		return []string{"sequence numbers and prior traces: nobody was asked about the agent's other sessions"}
	}
	if answers.Skipped != nil {
		f.add(schema.SessionFinding{Type: schema.TraceGap, Severity: schema.SeverityMedium, Field: numberField, TraceID: j.numbers.leastID,
			Description: fmt.Sprintf("no trace has sequence number %s, between the agent's session before and this one", answers.Skipped)})
	}
	for _, r := range answers.Missing {
		f.add(schema.SessionFinding{Type: schema.TraceGap, Severity: schema.SeverityMedium, Field: numberField,
			Description: fmt.Sprintf("no trace has sequence number %s", r), TraceID: j.numbers.above(r.From)})
	}
	if answers.More > 0 {
		f.counts[schema.TraceGap] += int64(answers.More)
	}
	if answers.Partial {
		unchecked = append(unchecked, fmt.Sprintf("sequence numbers: only %d traces of the agent's other sessions were looked at", MaxNumbers))
	}
	open := j.priors.open()
	if len(open) != len(answers.Priors) {
		return append(unchecked, "prior traces: the answers that were kept are another version's")
	}
	for i, a := range open {
		finding := schema.SessionFinding{Type: schema.TraceOrder, Severity: schema.SeverityMedium, TraceID: a.by, Field: priorField}
		switch answers.Priors[i : i+1] {
		case priorThere:
			continue
		case priorMissing:
			finding.Type, finding.Description = schema.TraceGap, fmt.Sprintf("names %q as prior, which is not there: it never arrived, or its retention is over", a.id)
		case priorForeign:
			finding.Description = fmt.Sprintf("names %q as prior, a trace of another agent", a.id)
		case priorLater:
			finding.Description = laterText(a.id)
		}
		f.add(finding)
	}
	return unchecked
}
