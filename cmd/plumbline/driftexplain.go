package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/plumbline/plumbline/schema"
)

// write writes an explanation as text.
func (e *driftExplanation) write(w io.Writer) error {
	for i := range e.Courses {
		if err := e.Courses[i].write(w, e.AgentID); err != nil {
			return err
		}
	}
	if e.Letter == nil {
		return nil
	}
	return e.Letter.write(w)
}

// section writes a heading and rows in aligned columns.
func section(w io.Writer, heading string, rows [][]any) error {
	if _, err := fmt.Fprintln(w, heading); err != nil {
		return err
	}
	t := newTable(w)
	for _, row := range rows {
		if err := t.row(append([]any{" "}, row...)...); err != nil {
			return err
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}

func (v *courseView) write(w io.Writer, agent string) error {
	p := v.Parameters
	head := [][]any{
		{"agent", agent}, {"card", v.CardID}, {"traces", fmt.Sprintf("%d applied, the last of %s", v.Traces, cell(v.LastEvent))},
		{"mode", fmt.Sprintf("%s: threshold %g, %d in a row raise an alert, window %d, a baseline is of %d traces", p.Mode, p.Threshold, p.Sustained, p.Window, p.N)},
	}
	for _, part := range []struct {
		heading string
		rows    [][]any
	}{
		{"Course", head},
		{v.baselineHeading(), v.baselineRows()},
		{"Points, the newest last", v.pointRows()},
		{"Streak: " + v.Streak.Why, v.Streak.rows()},
		{fmt.Sprintf("Alerts: %d", len(v.Alerts)), alertRows(v.Alerts)},
	} {
		if err := section(w, part.heading, part.rows); err != nil {
			return err
		}
	}
	return nil
}

func (v *courseView) baselineHeading() string {
	if v.Baseline == nil {
		return "Baseline: not formed yet"
	}
	heading := fmt.Sprintf("Baseline %s (%s): the centroid of %d traces", short(v.Baseline.ID), v.Baseline.Mode, v.Baseline.Traces)
	if n := len(v.Earlier); n > 0 {
		heading += fmt.Sprintf("; %d others have been recorded", n)
	}
	return heading
}

func (v *courseView) baselineRows() (rows [][]any) {
	b := v.Baseline
	if b == nil {
		return nil
	}
	if len(b.TraceIDs) > 0 {
		rows = append(rows, []any{"formed at", b.FormedAt}, []any{"traces", strings.Join(b.TraceIDs, " ")})
	}
	rows = append(rows, []any{"escalation rate", fmt.Sprintf("%.2f", b.EscalationRate)}, []any{"texts sketched", b.Texts})
	for _, f := range b.Features {
		rows = append(rows, []any{f.Name, fmt.Sprintf("%.4f", f.Weight)})
	}
	return rows
}

func (v *courseView) pointRows() [][]any {
	rows := [][]any{{"time", "trace", "status", "similarity", "streak", "mode", "baseline"}}
	for _, p := range v.Points {
		rows = append(rows, []any{p.Time, p.TraceID, p.Status, fixed(p.Similarity), p.Streak, p.Mode, short(p.BaselineID)})
	}
	return rows
}

// rows returns the streak's traces, and what decides its direction, in order.
func (s *streakView) rows() (rows [][]any) {
	for _, low := range s.Traces {
		rows = append(rows, []any{"low", low.TraceID, fmt.Sprintf("%.4f", low.Similarity)})
	}
	if len(s.Measures) == 0 {
		return rows
	}
	rows = append(rows, []any{"direction", string(s.Direction)}, []any{"decided by", "the first of these that holds; b is the baseline, s the streak"})
	for _, m := range s.Measures {
		figures := "not known"
		if m.Known {
			figures = fmt.Sprintf("b = %.2f, s = %.2f", m.Baseline, m.Streak)
		}
		verdict := "no"
		if m.Holds {
			verdict = "holds"
		}
		rows = append(rows, []any{verdict, string(m.Category), figures, m.Formula})
	}
	return rows
}

func alertRows(alerts []schema.DriftAlert) (rows [][]any) {
	for i := range alerts {
		a := &alerts[i]
		rows = append(rows, []any{a.DetectionTimestamp, short(a.AlertID), string(a.Analysis.DriftDirection),
			fmt.Sprintf("similarity %.4f", a.Analysis.SimilarityScore), strings.Join(a.TraceIDs, " ")})
		for _, indicator := range a.Analysis.SpecificIndicators {
			rows = append(rows, []any{"", "", indicator.Indicator, indicator.Description})
		}
	}
	return rows
}

// fixed formats a similarity; "-" if there is none.
func fixed(similarity *float64) string {
	if similarity == nil {
		return "-"
	}
	return fmt.Sprintf("%.4f", *similarity)
}

// short returns the beginning of an id; "-" if there is none.
func short(id schema.Digest) string {
	if id.IsZero() {
		return "-"
	}
	return id.String()[:12]
}
