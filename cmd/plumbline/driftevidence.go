package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	aapdrift "github.com/plumbline/plumbline/aap/drift"
)

type paramsView struct {
	Mode      string  `json:"mode"`
	Threshold float64 `json:"threshold"`
	Sustained int     `json:"sustained"`

	// Of modes first and rolling.
	Window int `json:"window,omitempty"`
	N      int `json:"baseline_traces,omitempty"`

	// Of modes sessions and pinned.
	Sessions       int `json:"baseline_sessions,omitempty"`
	LeastTraces    int `json:"least_baseline_traces,omitempty"`
	MostTraces     int `json:"most_baseline_traces,omitempty"`
	StreakSessions int `json:"streak_sessions,omitempty"`
}

func paramsOf(p aapdrift.Params) paramsView {
	v := paramsView{Mode: string(p.Mode), Threshold: p.SimilarityThreshold, Sustained: p.Sustained}
	switch p.Mode {
	case aapdrift.ModeSessions, aapdrift.ModePinned:
		v.Sessions, v.LeastTraces, v.MostTraces, v.StreakSessions = p.Sessions, p.LeastTraces, p.MostTraces, p.StreakSessions
	default:
		v.Window, v.N = p.Window, p.BaselineTraces()
	}
	return v
}

// rows says where the baseline comes from, and what raises an alert.
func (p *paramsView) rows() [][]any {
	if p.Sessions == 0 {
		return [][]any{{"mode", fmt.Sprintf("%s: threshold %g, %d in a row raise an alert, window %d, a baseline of %d traces",
			p.Mode, p.Threshold, p.Sustained, p.Window, p.N)}}
	}
	learned := fmt.Sprintf("the traces until %d sessions are complete, at least %d traces, or the first %d traces", p.Sessions, p.LeastTraces, p.MostTraces)
	if p.Mode == string(aapdrift.ModePinned) {
		learned = "pinned by the operator; without a pin " + learned
	}
	return [][]any{
		{"mode", fmt.Sprintf("%s: the baseline is %s", p.Mode, learned)},
		{"alert", fmt.Sprintf("%d traces in a row (more where the baseline has such traces itself) below %g, of at least %d sessions, or a measure at its limit", p.Sustained, p.Threshold, p.StreakSessions)},
	}
}

// evidenceView is what one measure has found against the baseline.
type evidenceView struct {
	Measure        string  `json:"measure"`
	BaselineEvents int     `json:"baseline_events"`
	BaselineOf     int     `json:"baseline_of"`
	Events         int     `json:"events"` // since the evidence began
	Of             int     `json:"of"`
	Strength       float64 `json:"strength"` // decimal logarithm of the evidence over its limit: an alarm at 0
	InAlert        bool    `json:"in_alert"`
}

// evidenceOf returns what the measures have found, the strongest evidence first.
func evidenceOf(found []aapdrift.Evidence) []evidenceView {
	views := make([]evidenceView, len(found))
	for i, e := range found {
		views[i] = evidenceView{e.Name, e.BaselineEvents, e.BaselineOf, e.Events, e.Of, e.Strength, e.Joined}
	}
	slices.SortStableFunc(views, func(a, b evidenceView) int { return cmp.Compare(b.Strength, a.Strength) })
	return views
}

// writeEvidence lists what the measures have found. A measure without an observation is left out.
func (v *seriesView) writeEvidence(w io.Writer) error {
	rows := [][]any{{"measure", "baseline", "since then", "strength", ""}}
	for i := range v.Evidence {
		e := &v.Evidence[i]
		if e.BaselineOf+e.Of > 0 {
			rows = append(rows, []any{e.Measure, ofText(e.BaselineEvents, e.BaselineOf), ofText(e.Events, e.Of), fmt.Sprintf("%.1f", e.Strength),
				choose(e.InAlert, "in the open alert", "")})
		}
	}
	if len(rows) == 1 {
		return nil
	}
	return section(w, "Measures: events of decisions, in the baseline and since the evidence began. A measure is at its limit at strength 0", rows)
}

func ofText(events, of int) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%d of %d", events, of)
}
