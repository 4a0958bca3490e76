package main

import (
	"context"
	"fmt"
	"math"
	"time"

	aapdrift "github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/pipeline/drift"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

type driftCommands struct {
	Explain driftExplainCommand `cmd:"" help:"Show an agent's baseline, its points, its streak, and why it is or is not an alert."`
	Pin     driftPinCommand     `cmd:"" help:"Set the baseline that an agent is compared with in mode pinned."`
}

type driftExplainCommand struct {
	readerFlags `embed:""`
	Agent       string `arg:"" help:"The agent_id."`
	Card        string `placeholder:"CARD_ID" help:"Under this card only."`
	Points      int    `default:"20" help:"How many of the newest points are shown."`
	Letter      bool   `help:"Apply AAP section 8.2 to the whole list of the agent's traces as it stands, and say where that differs from the stream. It reads all of them."`
	JSON        bool   `help:"Print one JSON object."`
}

// driftExplanation is the result of drift explain.
type driftExplanation struct {
	AgentID string       `json:"agent_id"`
	Courses []courseView `json:"courses"` // one per card
	Letter  *letterView  `json:"letter,omitempty"`
}

// courseView describes an agent's series under one card.
type courseView struct {
	CardID     string              `json:"card_id"`
	Traces     int                 `json:"traces"` // applied
	LastEvent  time.Time           `json:"last_event"`
	Parameters paramsView          `json:"parameters"`
	Baseline   *baselineView       `json:"baseline"` // in force; null while it is learned
	Earlier    []baselineName      `json:"earlier_baselines"`
	Points     []pointView         `json:"points"` // the newest, in order
	Streak     streakView          `json:"streak"`
	Alerts     []schema.DriftAlert `json:"alerts"`
}

type paramsView struct {
	Mode      string  `json:"mode"`
	Threshold float64 `json:"threshold"`
	Sustained int     `json:"sustained"`
	Window    int     `json:"window"`
	N         int     `json:"baseline_traces"`
}

type baselineName struct {
	ID       schema.Digest `json:"baseline_id"`
	Mode     string        `json:"mode"` // how it was chosen
	FormedAt time.Time     `json:"formed_at"`
}

type baselineView struct {
	baselineName
	Traces         int           `json:"traces"`
	TraceIDs       []string      `json:"trace_ids"`
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
		points := c.Points
		if c.Letter {
			points = math.MaxInt32 // all points, for the comparison
		}
		reports, err := s.DriftOf(ctx, c.Agent, c.Card, points)
		if err != nil {
			return err
		}
		if len(reports) == 0 {
			return fmt.Errorf("%w: drift knows no agent %q%s (of tenant %s). Its id is as in its traces: plumbline sql 'SELECT DISTINCT agent_id, card_id FROM drift_points' lists them",
				errNothing, c.Agent, underCard(c.Card), c.Tenant)
		}
		e, err := c.explain(ctx, s, reports)
		if err != nil {
			return err
		}
		if c.JSON {
			return writeJSON(con.out, e)
		}
		return e.write(con.out)
	})
}

func underCard(card string) string {
	if card == "" {
		return ""
	}
	return fmt.Sprintf(" under card %q", card)
}

func (c *driftExplainCommand) explain(ctx context.Context, s *store.Store, reports []store.DriftReport) (*driftExplanation, error) {
	e := &driftExplanation{AgentID: c.Agent}
	var params aapdrift.Params
	for i := range reports {
		state, err := drift.StateOf(&reports[i].State)
		if err != nil {
			return nil, fmt.Errorf("card %s: %w", reports[i].State.CardID, err)
		}
		params = state.Params
		e.Courses = append(e.Courses, courseOf(&reports[i], state, c.Points))
	}
	if !c.Letter {
		return e, nil
	}
	letter, err := applyLetter(ctx, s, c.Agent, c.Card, params)
	if err != nil {
		return nil, err
	}
	letter.compare(reports)
	e.Letter = letter
	return e, nil
}

func courseOf(r *store.DriftReport, state *aapdrift.State, points int) courseView {
	e := state.Explain()
	v := courseView{
		CardID: r.State.CardID, Traces: e.Traces, LastEvent: r.State.LastEvent,
		Parameters: paramsView{
			string(e.Params.Mode), e.Params.SimilarityThreshold, e.Params.Sustained, e.Params.Window, e.Params.BaselineTraces(),
		},
		Earlier: []baselineName{}, Points: []pointView{}, Streak: streakOf(&e), Alerts: []schema.DriftAlert{},
	}
	if e.Baseline != nil {
		v.Baseline = baselineOf(e.Baseline)
	}
	for i := range r.Baselines {
		b := &r.Baselines[i]
		name := baselineName{b.BaselineID, b.Mode, b.FormedAt}
		if v.Baseline != nil && b.BaselineID == v.Baseline.ID {
			v.Baseline.baselineName, v.Baseline.TraceIDs = name, b.TraceIDs
			continue
		}
		v.Earlier = append(v.Earlier, name)
	}
	for _, p := range r.Points[max(0, len(r.Points)-points):] {
		v.Points = append(v.Points, pointView{p.EventTime, p.TraceID, p.Status, p.Similarity, p.Threshold, p.Streak, p.Mode, p.BaselineID})
	}
	for i := range r.Alerts {
		v.Alerts = append(v.Alerts, r.Alerts[i].DriftAlert)
	}
	return v
}

func baselineOf(b *aapdrift.Baseline) *baselineView {
	v := &baselineView{
		baselineName: baselineName{ID: b.ID, Mode: string(b.Mode)},
		Traces:       b.Tally.Traces, TraceIDs: []string{}, EscalationRate: b.Tally.EscalationRate(), Texts: b.Reasoning.Texts,
	}
	for _, f := range b.Features {
		v.Features = append(v.Features, featureView{f.Key, f.Weight})
	}
	return v
}

func streakOf(e *aapdrift.Explanation) streakView {
	v := streakView{
		Length: e.Streak, Alerted: e.Alerted, Why: e.Why, Direction: e.Direction, Traces: []lowView{}, Measures: []measureView{},
	}
	for _, low := range e.Low {
		v.Traces = append(v.Traces, lowView{low.TraceID, low.Similarity})
	}
	for _, m := range e.Measures {
		view := measureView{Category: m.Category, Formula: m.Formula, Known: m.Known, Baseline: m.Baseline, Streak: m.Current, Holds: m.Holds}
		if m.Notable {
			view.Indicator = m.Indicator.Indicator
		}
		v.Measures = append(v.Measures, view)
	}
	return v
}
