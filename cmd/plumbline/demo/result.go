package demo

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// Result is the result of a run; its JSON form is the output of demo --json. A number under a
// type of violation or finding counts traces: a trace with two findings of one type counts
// once. A number under a type of session finding counts findings.
type Result struct {
	Published             int            `json:"published"` // lines
	Stored                int            `json:"stored"`    // traces among them that are visible after the run
	Duplicates            int            `json:"duplicates"`
	Conflicts             int            `json:"conflicts"`
	DeadLettered          int            `json:"dead_lettered"`
	Violations            map[string]int `json:"violations"`
	Planted               map[string]int `json:"planted"` // violations and findings; empty where nothing was planted
	Findings              map[string]int `json:"findings"`
	SessionFindings       map[string]int `json:"session_findings"`
	PlantedInSessions     map[string]int `json:"planted_session_findings"` // empty where nothing was planted
	DriftAlerts           int            `json:"drift_alerts"`
	PlantedDrift          int            `json:"planted_drift"`
	BundlesSealed         int            `json:"bundles_sealed"`
	BundlesVerifiedGo     int            `json:"bundles_verified_go"`
	BundlesVerifiedPython int            `json:"bundles_verified_python"`
	ElapsedS              float64        `json:"elapsed_s"`    // of the whole run
	TracesPerS            float64        `json:"traces_per_s"` // from publish until judged and queryable

	Faults []string `json:"-"` // lost traces and differences from what was planted; empty if all is well
	Kept   string   `json:"-"` // data directory that was kept

	planted *Result // the expected result; nil if nothing was planted
}

// count sets the numbers of what was found.
func (r *Result) count(p *published, f *found, v *verified) {
	r.Published, r.Stored = p.lines, len(f.stored)
	r.Duplicates = p.lines - len(p.refused) - f.added + f.strange
	r.Conflicts, r.DeadLettered = len(f.conflicts), len(f.letters)
	r.Violations, r.Findings = counted(violationTypes, f.violations), counted(findingTypes, f.findings)
	r.SessionFindings = counted(sessionFindingTypes, nil)
	maps.Copy(r.SessionFindings, f.sessionCounts)
	r.DriftAlerts, r.BundlesSealed = len(f.alerts), len(f.bundles)
	r.BundlesVerifiedGo, r.BundlesVerifiedPython = v.golang, v.python
}

// countPlanted sets the numbers of what was planted.
func (r *Result) countPlanted(s *script) {
	r.Planted, r.PlantedInSessions = map[string]int{}, map[string]int{}
	if s.truth == nil {
		return
	}
	t := s.truth
	r.planted = &Result{
		Published: t.Lines, Stored: t.Stored, Duplicates: len(t.Duplicates), Conflicts: len(t.Conflicts), DeadLettered: len(t.Refused),
		Violations: counted(violationTypes, t.Violations), Findings: counted(findingTypes, t.Findings), DriftAlerts: len(t.Drift),
		SessionFindings: counted(sessionFindingTypes, t.SessionFindings),
	}
	maps.Copy(r.Planted, r.planted.Violations)
	maps.Copy(r.Planted, r.planted.Findings)
	maps.Copy(r.PlantedInSessions, r.planted.SessionFindings)
	r.PlantedDrift = len(t.Drift)
}

// counted counts ids by type; each of the types is in the result.
func counted(types []string, ids map[string][]string) map[string]int {
	counts := map[string]int{}
	for _, kind := range types {
		counts[kind] = 0
	}
	for kind, list := range ids {
		counts[kind] = len(list)
	}
	return counts
}

// WriteText writes the result as text, followed by the limitations of every result
// (AAP section 10.1).
func (r *Result) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name string, value func(*Result) int) {
		planted := "-"
		if r.planted != nil {
			planted = thousands(value(r.planted))
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t\n", name, thousands(value(r)), planted)
	}
	fmt.Fprintf(t, "\tfound\tplanted\t\n")
	row("lines published", func(r *Result) int { return r.Published })
	row("traces stored", func(r *Result) int { return r.Stored })
	row("duplicates", func(r *Result) int { return r.Duplicates })
	row("conflicts", func(r *Result) int { return r.Conflicts })
	row("dead letters", func(r *Result) int { return r.DeadLettered })
	row("drift alerts", func(r *Result) int { return r.DriftAlerts })
	for _, group := range []struct {
		title  string
		types  []string // always listed; others only if they were found
		counts func(*Result) map[string]int
	}{
		{"violations, in traces:", violationTypes, func(r *Result) map[string]int { return r.Violations }},
		{"findings, in traces:", findingTypes, func(r *Result) map[string]int { return r.Findings }},
		{"findings on sessions, each:", sessionFindingTypes, func(r *Result) map[string]int { return r.SessionFindings }},
	} {
		fmt.Fprintf(t, "%s\t\t\t\n", group.title)
		others := slices.DeleteFunc(slices.Sorted(maps.Keys(group.counts(r))), func(kind string) bool { return slices.Contains(group.types, kind) })
		for _, kind := range slices.Concat(group.types, others) {
			row(kind, func(r *Result) int { return group.counts(r)[kind] })
		}
	}
	fmt.Fprintf(t, "bundles sealed\t%s\t\t\n", thousands(r.BundlesSealed))
	fmt.Fprintf(t, "verified in Go, key pinned\t%s\t\t\n", thousands(r.BundlesVerifiedGo))
	fmt.Fprintf(t, "verified by their verify.py, python3 -I\t%s\t\t\n", thousands(r.BundlesVerifiedPython))
	fmt.Fprintf(t, "elapsed\t%s\t\t\n", time.Duration(r.ElapsedS*float64(time.Second)).Round(100*time.Millisecond))
	fmt.Fprintf(t, "traces/s, publish to queryable\t%s\t\t\n", thousands(int(r.TracesPerS)))
	if err := t.Flush(); err != nil {
		return err
	}
	return r.writeEnd(w)
}

// writeEnd writes whether all is well, where to look next, and the limitations.
func (r *Result) writeEnd(w io.Writer) error {
	text := "\n"
	for _, fault := range r.Faults {
		text += "WRONG: " + fault + "\n"
	}
	switch {
	case len(r.Faults) > 0:
	case r.planted == nil:
		text += "Every published trace is stored once, judged and sealed. Both verifiers accept every bundle.\n"
	default:
		text += "The findings are exactly the planted faults, id by id. Nothing is lost. Both verifiers accept every bundle.\n"
	}
	if r.Kept != "" {
		text += fmt.Sprintf("The data is in %s. To look at it, run: plumbline up --data %s\n", r.Kept, strconv.Quote(r.Kept))
	}
	text += "\nWhat this does not show:\n"
	for _, sentence := range schema.Limitations() {
		text += "  " + sentence + "\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

// thousands formats a number with separators.
func thousands(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
