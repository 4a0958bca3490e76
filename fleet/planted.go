package fleet

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

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

// PlantedDrift is a lasting change of an agent's behaviour. It raises exactly one drift alert.
type PlantedDrift struct {
	AgentID    string
	CardID     string
	Direction  schema.Direction // category of the alert
	First      string           // the first trace after the change
	Begin, End time.Time        // event times of the first and the last trace of the change
	Recovers   bool             // the agent behaves as before again, so that the alert closes
}

// raises reports whether an alert is the one that the change raises: it opens during the change,
// and is closed if the agent has recovered.
func (d *PlantedDrift) raises(a *schema.DriftAlert) bool {
	return a.AgentID == d.AgentID && a.CardID == d.CardID && a.Analysis.DriftDirection == d.Direction &&
		!a.OpenedAt.Before(d.Begin) && !a.OpenedAt.After(d.End) && (a.State == schema.AlertClosed) == d.Recovers
}

// CompareDrift compares the planted changes with alerts, each as its newest event says. It returns
// the changes that raised none, and the alerts that no change raises, or that are a second one.
func (p *Planted) CompareDrift(alerts []*schema.DriftAlert) (missing []PlantedDrift, strange []*schema.DriftAlert) {
	missing = slices.Clone(p.Drift)
	for _, a := range alerts {
		if n := slices.IndexFunc(missing, func(d PlantedDrift) bool { return d.raises(a) }); n >= 0 {
			missing = slices.Delete(missing, n, n+1)
		} else {
			strange = append(strange, a)
		}
	}
	return missing, strange
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

// String describes the change for messages.
func (d PlantedDrift) String() string {
	return fmt.Sprintf("%s under %s: %s from %s on, recovers: %t", d.AgentID, d.CardID, d.Direction, d.First, d.Recovers)
}
