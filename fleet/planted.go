package fleet

import (
	"fmt"
	"math/rand/v2"

	"github.com/plumbline/plumbline/schema"
)

// Planted is the truth about the lines of a fleet. Lists of trace ids are sorted and have no
// duplicates.
//
// These equations hold: Lines = Stored + len(Duplicates) + len(Refused), and Stored =
// Config.Traces = distinct trace ids + len(Conflicts).
type Planted struct {
	Violations map[string][]string // type of AAP section 7.5 → the traces with it
	Findings   map[string][]string // type of a finding → the traces with it

	SessionFindings map[string][]string // type of a finding on a session → the traces that it names

	Drift   []PlantedDrift // one for each alert, in the order of the agents
	Revoked []string       // card ids revoked after registration and before publishing

	Duplicates []string // published twice, byte for byte; stored once
	Conflicts  []string // published with two contents; both are stored, and neither has a plant
	Refused    []PlantedRefusal

	Sessions int // (agent, session) pairs; each ends with its last trace
	Stored   int // traces stored at the end: (agent, trace id, digest) triples
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
	p.Violations, p.Findings, p.SessionFindings = map[string][]string{}, map[string][]string{}, map[string][]string{}
	// An escalation that a step leaves pending is never answered: no other step names it.
	source := rand.NewPCG(0, 0)
	rng := rand.New(source)
	var b behaviour
	for n := range f.steps {
		s, a, id := &f.steps[n], f.agentOf(n), f.traceID(n)
		switch {
		case s.plant > 0:
			plant := &f.plants[s.plant-1]
			add(p.Violations, plant.violations, id)
			add(p.Findings, plant.findings, id)
			add(p.SessionFindings, plant.session, id)
		case s.form == slid:
			add(p.Violations, a.slide.violations, id)
		}
		if s.loop {
			add(p.SessionFindings, only(schema.ActionLoop), id)
		}
		if s.gap {
			add(p.SessionFindings, only(schema.TraceGap), id)
		}
		f.seed(source, n)
		if f.behave(rng, &b, a, s); b.status == schema.EscalationPending {
			add(p.SessionFindings, only(schema.EscalationUnanswered), id)
		}
	}
	for i := range f.agents {
		if a := &f.agents[i]; a.role == withdrawn {
			p.Revoked = append(p.Revoked, a.older.id)
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
	for _, lists := range []map[string][]string{p.Violations, p.Findings, p.SessionFindings} {
		for name, ids := range lists {
			lists[name] = sorted(ids)
		}
	}
	p.Duplicates, p.Conflicts = sorted(p.Duplicates), sorted(p.Conflicts)
	p.Lines = len(f.lines)
	p.Stored = p.Lines - len(p.Duplicates) - len(p.Refused)
}

// add adds an id to the list of each name.
func add(to map[string][]string, names []string, id string) {
	for _, name := range names {
		to[name] = append(to[name], id)
	}
}

// traceID returns the id of the trace of step n, distinct for distinct n.
func (f *Fleet) traceID(n int) string { return fmt.Sprintf("tr-%016x", mix(f.salt+uint64(n))) }

// brokenID returns the number of a broken line's trace, which is larger than every step.
func (f *Fleet) brokenID(l line) uint64 { return 1<<40 | uint64(l.spoil)<<32 | uint64(l.step) }

func (f *Fleet) sessionID(session int32) string {
	return fmt.Sprintf("sess-%016x", mix((f.salt^0x5e55)+uint64(session)))
}

// String describes the streak for messages.
func (d PlantedDrift) String() string {
	return fmt.Sprintf("%s under %s: %v", d.AgentID, d.CardID, d.TraceIDs)
}
