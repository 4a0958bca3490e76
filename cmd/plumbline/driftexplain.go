package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	aapdrift "github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/pipeline/drift"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

type driftCommands struct {
	Ls      driftLsCommand      `cmd:"" help:"List the alerts of drift, open ones first: since when, how many traces, what changed."`
	Explain driftExplainCommand `cmd:"" help:"Show an agent's baseline, points and streak, and why there is or is not an alert."`
	Eval    driftEvalCommand    `cmd:"" help:"Try drift detectors on recorded traces with injected changes: false alarms, changes found, delay."`
	Pin     driftPinCommand     `cmd:"" help:"Set the baseline that an agent is compared with in mode pinned."`
}

type driftExplainCommand struct {
	readerFlags `embed:""`
	Agent       string `arg:"" help:"The agent_id."`
	Card        string `placeholder:"CARD_ID" help:"Only the series under this card."`
	Points      int    `default:"20" help:"Number of the newest points to show."`
	SVG         string `name:"svg" placeholder:"FILE" help:"Also draw the similarity of the newest points of a series, as SVG. Name the card with --card if there are several."`
	Letter      bool   `help:"Apply AAP section 8.2 literally to the complete list of the agent's traces, and show the differences from the stream. It reads all traces."`
	JSON        bool   `help:"Print one JSON object."`
}

// Help returns the examples.
func (*driftExplainCommand) Help() string {
	return examples(
		"plumbline drift explain did:web:buyer.example",
		"plumbline drift explain did:web:buyer.example --points 100 --json",
		"plumbline drift explain did:web:buyer.example --svg drift.svg",
	)
}

// driftExplanation is the result of drift explain.
type driftExplanation struct {
	AgentID string       `json:"agent_id"`
	Series  []seriesView `json:"courses"` // one per card
	List    *listView    `json:"letter,omitempty"`
}

// seriesView describes an agent's series under one card.
type seriesView struct {
	CardID     string              `json:"card_id"`
	Traces     int                 `json:"traces"` // applied
	LastEvent  time.Time           `json:"last_event"`
	Parameters paramsView          `json:"parameters"`
	Baseline   *baselineView       `json:"baseline"` // in force; null while it is learned
	Earlier    []baselineName      `json:"earlier_baselines"`
	Points     []pointView         `json:"points"` // the newest, in order
	Streak     streakView          `json:"streak"`
	Evidence   []evidenceView      `json:"evidence"` // of each measure in modes sessions and pinned, the strongest first
	Alerts     []schema.DriftAlert `json:"alerts"`
}

type baselineName struct {
	ID       schema.Digest `json:"baseline_id"`
	Mode     string        `json:"mode"` // how it was chosen
	FormedAt time.Time     `json:"formed_at"`
}

type baselineView struct {
	baselineName
	Traces         int           `json:"traces"`
	TraceIDs       []string      `json:"trace_ids"` // none in mode sessions: they are the traces of the sessions
	SessionIDs     []string      `json:"session_ids"`
	EscalationRate float64       `json:"escalation_rate"`
	Texts          int           `json:"texts"`
	Features       []featureView `json:"features"` // the centroid
}

type featureView struct {
	Name   string  `json:"name"`
	Weight float64 `json:"weight"`
}

type pointView struct {
	Time       time.Time     `json:"time"`
	TraceID    string        `json:"trace_id"`
	Status     string        `json:"status"`
	Similarity *float64      `json:"similarity"`
	Threshold  float64       `json:"threshold"`
	Streak     uint32        `json:"streak"`
	Mode       string        `json:"mode"`
	BaselineID schema.Digest `json:"baseline_id"`
}

type streakView struct {
	Length    int              `json:"length"`
	Alerted   bool             `json:"alerted"`
	Why       string           `json:"why"`
	Direction schema.Direction `json:"direction,omitempty"`
	Traces    []lowView        `json:"traces"` // the first traces, as many as its alert names
	Measures  []measureView    `json:"measures"`
}

type lowView struct {
	TraceID    string  `json:"trace_id"`
	Similarity float64 `json:"similarity"`
}

type measureView struct {
	Category  schema.Direction `json:"category"`
	Formula   string           `json:"formula"`
	Known     bool             `json:"known"`
	Baseline  float64          `json:"baseline"`
	Streak    float64          `json:"streak"`
	Holds     bool             `json:"holds"`
	Indicator string           `json:"indicator,omitempty"` // that the alert has because of this measure
}

// Run explains every series of the agent.
func (c *driftExplainCommand) Run(ctx context.Context, con *console) error {
	if c.Points < 0 {
		return usagef("--points %d: want 0 or more", c.Points)
	}
	return c.read(ctx, func(s *store.Store) error {
		points := max(c.Points, drawnPoints)
		if c.Letter {
			points = math.MaxInt32 // all points, for the comparison
		}
		reports, err := s.DriftOf(ctx, c.Agent, c.Card, points)
		if err != nil {
			return err
		}
		if len(reports) == 0 {
			return noSuchAgent(c.Agent, c.Card, c.Tenant)
		}
		e := &driftExplanation{AgentID: c.Agent}
		var params aapdrift.Params
		for i := range reports {
			state, err := drift.StateOf(&reports[i].State)
			if err != nil {
				return fmt.Errorf("card %s: %w", reports[i].State.CardID, err)
			}
			params = state.Params
			e.Series = append(e.Series, seriesOf(&reports[i], state, c.Points))
		}
		if c.Letter {
			if e.List, err = detectOverList(ctx, s, c.Agent, c.Card, params); err != nil {
				return err
			}
			e.List.compare(reports)
		}
		if c.SVG != "" {
			if err := c.draw(reports); err != nil {
				return err
			}
		}
		if c.JSON {
			return writeJSON(con.out, e)
		}
		for i := range e.Series {
			if err := e.Series[i].write(con.out, e.AgentID, drawnLines(&reports[i], columnsOf(con.out), glyphsOf(os.Getenv))); err != nil {
				return err
			}
		}
		if e.List == nil {
			return nil
		}
		return e.List.write(con.out)
	})
}

func noSuchAgent(agent, card, tenant string) error {
	return fmt.Errorf("%w: drift knows no agent %q%s (of tenant %s). To list the agents, run: plumbline sql 'SELECT DISTINCT agent_id, card_id FROM drift_points'",
		errNothing, agent, underCard(card), tenant)
}

func underCard(card string) string {
	if card == "" {
		return ""
	}
	return fmt.Sprintf(" under card %q", card)
}

func seriesOf(r *store.DriftReport, state *aapdrift.State, points int) seriesView {
	e := state.Explain()
	v := seriesView{
		CardID: r.State.CardID, Traces: e.Traces, LastEvent: r.State.LastEvent,
		Parameters: paramsOf(e.Params),
		Earlier:    []baselineName{}, Points: []pointView{}, Evidence: evidenceOf(e.Evidence), Alerts: []schema.DriftAlert{},
		Streak: streakView{
			Length: e.Streak, Alerted: e.Alerted, Why: e.Why, Direction: e.Direction, Traces: []lowView{}, Measures: []measureView{},
		},
	}
	if b := e.Baseline; b != nil {
		v.Baseline = &baselineView{
			baselineName: baselineName{ID: b.ID, Mode: string(b.Mode)},
			Traces:       b.Tally.Traces, TraceIDs: []string{}, SessionIDs: []string{}, EscalationRate: b.Tally.EscalationRate(), Texts: b.Reasoning.Texts,
		}
		for _, f := range b.Features {
			v.Baseline.Features = append(v.Baseline.Features, featureView{f.Key, f.Weight})
		}
	}
	for i := range r.Baselines {
		b := &r.Baselines[i]
		name := baselineName{b.BaselineID, b.Mode, b.FormedAt}
		if v.Baseline != nil && b.BaselineID == v.Baseline.ID {
			v.Baseline.baselineName, v.Baseline.TraceIDs, v.Baseline.SessionIDs = name, b.TraceIDs, b.SessionIDs
			if len(v.Baseline.Features) == 0 { // the state of a baseline of sessions has no names
				for at, feature := range b.Features {
					v.Baseline.Features = append(v.Baseline.Features, featureView{feature, b.Weights[at]})
				}
			}
			continue
		}
		v.Earlier = append(v.Earlier, name)
	}
	for _, p := range r.Points[max(0, len(r.Points)-points):] {
		v.Points = append(v.Points, pointView{p.EventTime, p.TraceID, p.Status, p.Similarity, p.Threshold, p.Streak, p.Mode, p.BaselineID})
	}
	for _, low := range e.Low {
		v.Streak.Traces = append(v.Streak.Traces, lowView{low.TraceID, low.Similarity})
	}
	for _, m := range e.Measures {
		view := measureView{Category: m.Category, Formula: m.Formula, Known: m.Known, Baseline: m.Baseline, Streak: m.Current, Holds: m.Holds}
		if m.Notable {
			view.Indicator = m.Indicator.Indicator
		}
		v.Streak.Measures = append(v.Streak.Measures, view)
	}
	for i := range r.Alerts {
		v.Alerts = append(v.Alerts, r.Alerts[i].DriftAlert)
	}
	return v
}

// section writes a heading and rows in aligned columns.
func section(w io.Writer, heading string, rows [][]any) error {
	if _, err := fmt.Fprintln(w, heading); err != nil {
		return err
	}
	t := newTable(w)
	for _, row := range rows {
		t.row(append([]any{" "}, row...)...)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}

// write prints the series, with a drawing of its similarity.
func (v *seriesView) write(w io.Writer, agent string, drawing []string) error {
	head := append([][]any{
		{"agent", agent}, {"card", v.CardID}, {"traces", fmt.Sprintf("%d applied, the newest of %s", v.Traces, cell(v.LastEvent))},
	}, v.Parameters.rows()...)
	heading, baseline := "Baseline: not formed yet", [][]any(nil)
	if b := v.Baseline; b != nil {
		heading = fmt.Sprintf("Baseline %s (%s): the centroid of %d traces", short(b.ID), b.Mode, b.Traces)
		if n := len(b.SessionIDs); n > 0 {
			heading += fmt.Sprintf(" of %d sessions", n)
		}
		if n := len(v.Earlier); n > 0 {
			heading += fmt.Sprintf("; %d other baselines are recorded", n)
		}
		if !b.FormedAt.IsZero() {
			baseline = append(baseline, []any{"formed at", b.FormedAt})
		}
		if len(b.SessionIDs) > 0 {
			baseline = append(baseline, []any{"sessions", strings.Join(b.SessionIDs, " ")})
		}
		if len(b.TraceIDs) > 0 {
			baseline = append(baseline, []any{"traces", strings.Join(b.TraceIDs, " ")})
		}
		baseline = append(baseline, []any{"escalation rate", fmt.Sprintf("%.2f", b.EscalationRate)}, []any{"reasoning texts", b.Texts})
		for _, f := range b.Features {
			baseline = append(baseline, []any{f.Name, fmt.Sprintf("%.4f", f.Weight)})
		}
	}
	points := [][]any{{"time", "trace", "status", "similarity", "streak", "mode", "baseline"}}
	for _, p := range v.Points {
		similarity := "-"
		if p.Similarity != nil {
			similarity = fmt.Sprintf("%.4f", *p.Similarity)
		}
		points = append(points, []any{p.Time, p.TraceID, p.Status, similarity, p.Streak, p.Mode, short(p.BaselineID)})
	}
	return errors.Join(
		section(w, "Series", head),
		section(w, heading, baseline),
		writeLines(w, drawing),
		section(w, "Points, the newest last", points),
		section(w, "Now: "+v.Streak.Why, v.Streak.rows()),
		v.writeEvidence(w),
		section(w, fmt.Sprintf("Alerts: %d", len(v.Alerts)), alertRows(v.Alerts)))
}

// rows returns the streak's traces, and what decides its direction, in order.
func (s *streakView) rows() (rows [][]any) {
	for _, low := range s.Traces {
		rows = append(rows, []any{"low", low.TraceID, fmt.Sprintf("%.4f", low.Similarity)})
	}
	if len(s.Measures) == 0 {
		return rows
	}
	rows = append(rows, []any{"direction", string(s.Direction)}, []any{"decided by", "the first of these measures that is met; b: baseline, s: streak"})
	for _, m := range s.Measures {
		figures := "unknown"
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
		rows = append(rows, []any{a.OpenedAt, short(a.AlertID), string(a.Analysis.DriftDirection),
			fmt.Sprintf("similarity %.4f", a.Analysis.SimilarityScore), strings.Join(a.TraceIDs, " ")})
		state := string(a.State)
		if !a.ClosedAt.IsZero() {
			state += " " + cell(a.ClosedAt)
		}
		rows = append(rows, []any{"", "", state, fmt.Sprintf("revision %d, %d traces, the last %s", a.Revision, a.Count, a.LastTraceID)})
		if len(a.Measures) > 0 {
			rows = append(rows, []any{"", "", "measures", strings.Join(a.Measures, " ")})
		}
		if a.Summary != "" {
			rows = append(rows, []any{"", "", "what changed", a.Summary})
		}
		for _, indicator := range a.Analysis.SpecificIndicators {
			rows = append(rows, []any{"", "", indicator.Indicator, indicator.Description})
		}
	}
	return rows
}

// short returns the beginning of an id; "-" if there is none.
func short(id schema.Digest) string {
	if id.IsZero() {
		return "-"
	}
	return id.String()[:12]
}
