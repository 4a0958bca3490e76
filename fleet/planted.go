package fleet

import (
	"fmt"
	"strconv"
)

// Planted is the truth about what a fleet publishes. Lists of trace ids are
// sorted and hold no id twice.
//
// The counts add up so: Lines = Stored + len(Duplicates) + len(Refused), and
// Stored = Config.Traces = distinct trace ids + len(Conflicts).
type Planted struct {
	Violations map[string][]string // type of AAP section 7.5 → the traces that carry it
	Findings   map[string][]string // type of a finding → likewise
	Drift      []PlantedDrift      // one an alert, in the order of the agents

	Gaps       []string // traces before which the agent kept one back: TRACE_GAP of their sessions
	Duplicates []string // published twice, byte for byte; stored once
	Conflicts  []string // published with two contents; both stored, neither planted on
	Refused    []PlantedRefusal

	Sessions int // (agent, session) pairs, all of them ended by their last trace
	Stored   int // traces visible at the end: (agent, trace id, digest) triples
	Lines    int // published
}

// PlantedDrift is a streak that raises exactly one drift alert.
type PlantedDrift struct {
	AgentID  string
	CardID   string
	TraceIDs [sustained]string // in event-time order; the last raises the alert
}

// PlantedRefusal is a line that must not be stored.
type PlantedRefusal struct {
	Line    int    // index among Lines
	AgentID string // of the publisher
	Reason  string // of schema.Refusal
}

// tally completes f.planted from the plan.
func (f *Fleet) tally() {
	p := &f.planted
	p.Violations, p.Findings = map[string][]string{}, map[string][]string{}
	for n := range f.steps {
		f.tallyStep(n)
		if f.steps[n].gap {
			p.Gaps = append(p.Gaps, f.traceID(n))
		}
	}
	for i, l := range f.lines {
		switch l.kind {
		case duplicate:
			p.Duplicates = append(p.Duplicates, f.traceID(int(l.step)))
		case conflict:
			p.Conflicts = append(p.Conflicts, f.traceID(int(l.step)))
		case broken:
			p.Refused = append(p.Refused, PlantedRefusal{i, f.agentOf(int(l.step)).id, spoils[l.spoil].reason})
		}
	}
	for _, lists := range []map[string][]string{p.Violations, p.Findings} {
		for name, ids := range lists {
			lists[name] = sorted(ids)
		}
	}
	p.Duplicates, p.Conflicts, p.Gaps = sorted(p.Duplicates), sorted(p.Conflicts), sorted(p.Gaps)
	p.Lines = len(f.lines)
	p.Stored = p.Lines - len(p.Duplicates) - len(p.Refused)
}

// tallyStep adds what step n carries.
func (f *Fleet) tallyStep(n int) {
	s := &f.steps[n]
	var violations, findings []string
	switch {
	case s.plant > 0:
		violations, findings = f.plants[s.plant-1].violations, f.plants[s.plant-1].findings
	case s.form == slid:
		violations = f.agentOf(n).slide.violations
	}
	for _, name := range violations {
		f.planted.Violations[name] = append(f.planted.Violations[name], f.traceID(n))
	}
	for _, name := range findings {
		f.planted.Findings[name] = append(f.planted.Findings[name], f.traceID(n))
	}
}

// traceID is the id of the trace of step n.
func (f *Fleet) traceID(n int) string { return string(f.appendTraceID(nil, uint64(n))) }

// appendTraceID appends "tr-" and 16 hexadecimal digits, distinct for distinct n.
func (f *Fleet) appendTraceID(b []byte, n uint64) []byte {
	return appendHex(append(b, "tr-"...), mix(f.salt+n))
}

// brokenID numbers the traces of broken lines, beyond every step.
func (f *Fleet) brokenID(l line) uint64 { return 1<<40 | uint64(l.spoil)<<32 | uint64(l.step) }

func (f *Fleet) appendSessionID(b []byte, session int32) []byte {
	return appendHex(append(b, "sess-"...), mix((f.salt^0x5e55)+uint64(session)))
}

// appendHex appends x as 16 hexadecimal digits.
func appendHex(b []byte, x uint64) []byte {
	const digits = "0123456789abcdef"
	for shift := 60; shift >= 0; shift -= 4 {
		b = append(b, digits[x>>shift&15])
	}
	return b
}

// cents appends an amount of money with two decimals.
func cents(b []byte, amount int64) []byte {
	b = strconv.AppendInt(b, amount/100, 10)
	return append(b, '.', byte('0'+amount/10%10), byte('0'+amount%10))
}

// String names the streak for messages.
func (d PlantedDrift) String() string {
	return fmt.Sprintf("%s under %s: %v", d.AgentID, d.CardID, d.TraceIDs)
}
