package store

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/plumbline/plumbline/schema"
)

// DriftAlert is one event of a drift alert, and what the broker knows about the trace that caused it.
type DriftAlert struct {
	schema.DriftAlert
	Received    time.Time // of that trace
	RetainUntil time.Time // zero: forever
}

// DriftAlertKey identifies an event of a drift alert.
type DriftAlertKey struct {
	AlertID  schema.Digest `ch:"alert_id"`
	Revision uint32        `ch:"revision"`
}

func (a *DriftAlert) Key() DriftAlertKey {
	return DriftAlertKey{a.AlertID, uint32(a.Revision)}
}

type alertRow struct {
	Owned
	EventHour       uint32        `ch:"event_hour"`
	AgentID         string        `ch:"agent_id"`
	AlertID         schema.Digest `ch:"alert_id"`
	AlertType       string        `ch:"alert_type"`
	CardID          string        `ch:"card_id"`
	DetectedAt      time.Time     `ch:"detection_timestamp"`
	Received        time.Time     `ch:"received_at"`
	RetainUntil     RetainUntil   `ch:"retain_until"`
	SimilarityScore float64       `ch:"similarity_score"`
	SustainedTraces uint32        `ch:"sustained_traces"`
	Threshold       float64       `ch:"threshold"`
	DriftDirection  string        `ch:"drift_direction"`
	Indicators      []string      `ch:"specific_indicators.indicator"`
	Baselines       []float64     `ch:"specific_indicators.baseline"`
	Currents        []float64     `ch:"specific_indicators.current"`
	Descriptions    []string      `ch:"specific_indicators.description"`
	Recommendation  string        `ch:"recommendation"`
	TraceIDs        []string      `ch:"trace_ids"`
	EngineVersion   string        `ch:"engine_version"`
	Methodology     string        `ch:"methodology"`
	Mode            string        `ch:"mode"`
	BaselineID      schema.Digest `ch:"baseline_id"`
	Revision        uint32        `ch:"revision"` // 0 stands for 1: the row was stored before alerts had events
	State           string        `ch:"state"`
	OpenedAt        time.Time     `ch:"opened_at"`
	ClosedAt        *time.Time    `ch:"closed_at"`
	LastTraceID     string        `ch:"last_trace_id"`
	Count           uint32        `ch:"count"`
	Strength        float64       `ch:"strength"`
	Measures        []string      `ch:"measures"`
	Summary         string        `ch:"summary"`
}

func (r *alertRow) alert() DriftAlert {
	a := DriftAlert{
		DriftAlert: schema.DriftAlert{
			AlertID: r.AlertID, AlertType: r.AlertType, AgentID: r.AgentID, CardID: r.CardID,
			DetectionTimestamp: r.DetectedAt, Recommendation: r.Recommendation,
			TraceIDs: r.TraceIDs, EngineVersion: r.EngineVersion, Mode: r.Mode, BaselineID: r.BaselineID, Methodology: r.Methodology,
			Analysis: schema.DriftAnalysis{
				SimilarityScore: r.SimilarityScore, SustainedTraces: int(r.SustainedTraces),
				Threshold: r.Threshold, DriftDirection: schema.Direction(r.DriftDirection),
				SpecificIndicators: make([]schema.Indicator, 0, len(r.Indicators)),
			},
			State: schema.AlertState(r.State), Revision: int(max(r.Revision, 1)), OpenedAt: r.OpenedAt,
			LastTraceID: r.LastTraceID, Count: int(r.Count), Strength: r.Strength, Summary: r.Summary,
		},
		Received: r.Received, RetainUntil: time.Time(r.RetainUntil),
	}
	if r.ClosedAt != nil {
		a.ClosedAt = *r.ClosedAt
	}
	if len(r.Measures) > 0 {
		a.Measures = r.Measures
	}
	for i := range r.Indicators {
		a.Analysis.SpecificIndicators = append(a.Analysis.SpecificIndicators, schema.Indicator{
			Indicator: r.Indicators[i], Baseline: r.Baselines[i], Current: r.Currents[i], Description: r.Descriptions[i],
		})
	}
	return a
}

// InsertDriftAlerts stores events of alerts. An event that is stored again is visible once.
func (w Writer) InsertDriftAlerts(ctx context.Context, alerts []DriftAlert) error {
	rows := make([]alertRow, len(alerts))
	for i := range alerts {
		a, row := &alerts[i], &rows[i]
		*row = alertRow{
			EventHour: eventHour(a.OpenedAt), AgentID: a.AgentID, AlertID: a.AlertID,
			AlertType: a.AlertType, CardID: a.CardID, DetectedAt: a.DetectionTimestamp,
			Received: a.Received, RetainUntil: RetainUntil(a.RetainUntil),
			SimilarityScore: a.Analysis.SimilarityScore, SustainedTraces: uint32(a.Analysis.SustainedTraces),
			Threshold: a.Analysis.Threshold, DriftDirection: string(a.Analysis.DriftDirection),
			Recommendation: a.Recommendation, TraceIDs: a.TraceIDs,
			EngineVersion: a.EngineVersion, Methodology: a.Methodology, Mode: a.Mode, BaselineID: a.BaselineID,
			Revision: uint32(a.Revision), State: string(a.State), OpenedAt: a.OpenedAt,
			LastTraceID: a.LastTraceID, Count: uint32(a.Count), Strength: a.Strength, Measures: a.Measures, Summary: a.Summary,
		}
		if !a.ClosedAt.IsZero() {
			row.ClosedAt = &a.ClosedAt
		}
		for _, indicator := range a.Analysis.SpecificIndicators {
			row.Indicators = append(row.Indicators, indicator.Indicator)
			row.Baselines = append(row.Baselines, indicator.Baseline)
			row.Currents = append(row.Currents, indicator.Current)
			row.Descriptions = append(row.Descriptions, indicator.Description)
		}
	}
	return insertRows(ctx, w, "drift_alerts", rows)
}

// DriftAlerts returns every alert as its newest event says, in the order in which they opened.
func (r Reader) DriftAlerts(ctx context.Context) ([]DriftAlert, error) {
	return r.alertsOf(ctx, "", "", 1)
}

// DriftAlertEvents returns every event of every alert, in the order in which the alerts opened.
func (r Reader) DriftAlertEvents(ctx context.Context) ([]DriftAlert, error) {
	return r.alertsOf(ctx, "", "", math.MaxInt64)
}

// ListedDriftAlert is a drift alert as its newest event says, and whether the agent still drifts.
type ListedDriftAlert struct {
	Owned       `json:"-"`
	AgentID     string     `ch:"agent_id" json:"agent_id"`
	CardID      string     `ch:"card_id" json:"card_id"`
	AlertID     string     `ch:"alert_id" json:"alert_id"`
	State       string     `ch:"state" json:"state"` // open, closed, or ended: the series no longer drifts, and no event closed the alert
	OpenedAt    time.Time  `ch:"opened_at" json:"opened_at"`
	ClosedAt    *time.Time `ch:"closed_at" json:"closed_at,omitempty"`
	Detected    time.Time  `ch:"detection_timestamp" json:"detection_timestamp"` // of the newest event
	Revision    uint32     `ch:"revision" json:"revision"`
	Direction   string     `ch:"drift_direction" json:"drift_direction"`
	Count       uint32     `ch:"count" json:"count"`
	Strength    float64    `ch:"strength" json:"strength"`
	Measures    []string   `ch:"measures" json:"measures"`
	Summary     string     `ch:"summary" json:"summary"` // of an alert without one: its indicators
	LastTraceID string     `ch:"last_trace_id" json:"last_trace_id"`
	TraceIDs    []string   `ch:"trace_ids" json:"trace_ids"`
}

// ListDriftAlerts returns the open alerts and then the others, each newest first, of an agent or, if
// agentID is empty, of all agents. It returns at most limit alerts, and only open ones if open is set.
func (r Reader) ListDriftAlerts(ctx context.Context, agentID string, open bool, limit int) ([]ListedDriftAlert, error) {
	return read[ListedDriftAlert](ctx, r.db, "drift alerts", queryListedDriftAlerts,
		clickhouse.Named("agent", agentID), clickhouse.Named("open", open), clickhouse.Named("limit", limit))
}

// alertsOf returns the newest events of each alert of a series, or of every alert if both ids are
// empty.
func (r Reader) alertsOf(ctx context.Context, agentID, cardID string, events int) (alerts []DriftAlert, err error) {
	for row, err := range each[alertRow](ctx, r.db, "drift alerts", queryDriftAlerts, append(seriesOf(agentID, cardID), clickhouse.Named("events", events))...) {
		if err != nil {
			return nil, err
		}
		alerts = append(alerts, row.alert())
	}
	slices.SortFunc(alerts, func(a, b DriftAlert) int {
		return cmp.Or(a.OpenedAt.Compare(b.OpenedAt), bytes.Compare(a.AlertID[:], b.AlertID[:]), a.Revision-b.Revision)
	})
	return alerts, nil
}

// DriftState is the state from which the drift stage continues for one (agent, card).
type DriftState struct {
	Owned
	StreamCreated time.Time `ch:"stream_created"`
	Partition     uint16    `ch:"stream_partition"`
	AgentID       string    `ch:"agent_id"`
	CardID        string    `ch:"card_id"`
	Version       uint64    `ch:"version"`       // grows with every processed trace: the highest is kept
	Applied       uint64    `ch:"applied"`       // stream sequence: all up to it are applied or need not be
	AppliedAbove  []uint64  `ch:"applied_above"` // processed sequences above Applied, rising
	LastEvent     time.Time `ch:"last_event_time"`
	State         []byte    `ch:"state"` // packed by pipeline/drift
}

// statesTogether is how many states one statement inserts. They have some KB each, and the driver keeps its
// buffers as large as the largest insert made them.
const statesTogether = 4096

// InsertDriftStates stores states. A read returns the highest version for each (agent, card). After an error some
// of them may be stored.
func (w Writer) InsertDriftStates(ctx context.Context, states []DriftState) error {
	for part := range slices.Chunk(states, statesTogether) {
		if err := insertRows(ctx, w, "drift_state", part); err != nil {
			return err
		}
	}
	return nil
}

// SeriesKey names a series: an agent under a card.
type SeriesKey struct{ AgentID, CardID string }

// DriftStates returns the newest states of series, in any order: of each partition those with the given
// keys. A series that has none is left out. The stream is the one that was created at the given time. Pass
// at most a few thousand series.
func (r Reader) DriftStates(ctx context.Context, streamCreated time.Time, series map[int][]SeriesKey) ([]DriftState, error) {
	var partitions []int
	var agents, cards []string
	for partition, keys := range series {
		for _, key := range keys {
			partitions, agents, cards = append(partitions, partition), append(agents, key.AgentID), append(cards, key.CardID)
		}
	}
	return read[DriftState](ctx, r.db, "drift states", queryDriftStates, clickhouse.Named("created", nanoseconds(streamCreated)),
		clickhouse.Named("partitions", partitions), clickhouse.Named("agents", agents), clickhouse.Named("cards", cards))
}

// DriftStatesOf is DriftStates for all series of some agents of each partition: for each agent those whose
// messages are newest, at most MostSeries.
func (r Reader) DriftStatesOf(ctx context.Context, streamCreated time.Time, agentsOf map[int][]string) ([]DriftState, error) {
	var partitions []int
	var agents []string
	for partition, ids := range agentsOf {
		for _, id := range ids {
			partitions, agents = append(partitions, partition), append(agents, id)
		}
	}
	return read[DriftState](ctx, r.db, "drift states of agents", queryDriftStatesOf, clickhouse.Named("created", nanoseconds(streamCreated)),
		clickhouse.Named("partitions", partitions), clickhouse.Named("agents", agents), clickhouse.Named("most", MostSeries))
}

// MostSeries is the maximum number of series that DriftStatesOf returns for an agent.
const MostSeries = 64

// DriftBaseline is the baseline that drift compares the traces of one (agent, card) with.
type DriftBaseline struct {
	Owned
	AgentID        string        `ch:"agent_id"`
	CardID         string        `ch:"card_id"`
	BaselineID     schema.Digest `ch:"baseline_id"`
	Mode           string        `ch:"mode"` // how it was formed: sessions, first, rolling or pinned
	EngineVersion  string        `ch:"engine_version"`
	FormedAt       time.Time     `ch:"formed_at"`   // event time of the trace that completed it, or of the pin
	Received       time.Time     `ch:"received_at"` // when the broker took that trace, or when it was pinned
	Traces         uint32        `ch:"traces"`
	TraceIDs       []string      `ch:"trace_ids"`     // in order; none in mode sessions, fewer than Traces if an older engine began it
	TraceDigests   []string      `ch:"trace_digests"` // the same, in hexadecimal digits
	Features       []string      `ch:"features.name"`
	Weights        []float64     `ch:"features.weight"`
	EscalationRate float64       `ch:"escalation_rate"`
	Texts          uint32        `ch:"texts"`       // number of selection reasonings that were sketched
	SessionIDs     []string      `ch:"session_ids"` // none in modes first and rolling
}

func (w Writer) InsertDriftBaselines(ctx context.Context, baselines []DriftBaseline) error {
	return insertRows(ctx, w, "drift_baselines", baselines)
}

// DriftReport is what is stored about one series, that is, an agent under a card.
type DriftReport struct {
	State     DriftState      // the current state
	Baselines []DriftBaseline // oldest first
	Points    []DriftPoint    // the newest ones, oldest first
	Alerts    []DriftAlert    // as their newest events say, oldest first
}

// DriftOf reports on an agent, under one card or, if cardID is empty, under each card. points
// limits the number of the newest points. It returns nothing for an agent without drift states.
func (r Reader) DriftOf(ctx context.Context, agentID, cardID string, points int) ([]DriftReport, error) {
	states, err := read[DriftState](ctx, r.db, fmt.Sprintf("the drift states of agent %q", agentID), queryAgentDriftStates, seriesOf(agentID, cardID)...)
	if err != nil {
		return nil, err
	}
	reports := make([]DriftReport, len(states))
	for i := range states {
		report, series := &reports[i], seriesOf(agentID, states[i].CardID)
		report.State = states[i]
		what := fmt.Sprintf("the drift of agent %q under card %q", agentID, states[i].CardID)
		if report.Baselines, err = read[DriftBaseline](ctx, r.db, what, queryAgentDriftBaselines, series...); err != nil {
			return nil, err
		}
		if report.Points, err = read[DriftPoint](ctx, r.db, what, queryAgentDriftPoints, append(series, clickhouse.Named("limit", points))...); err != nil {
			return nil, err
		}
		slices.Reverse(report.Points)
		if report.Alerts, err = r.alertsOf(ctx, agentID, states[i].CardID, 1); err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
	}
	return reports, nil
}

func seriesOf(agentID, cardID string) []any {
	return []any{clickhouse.Named("agent", agentID), clickhouse.Named("card", cardID)}
}

// AgentTraces yields an agent's traces, ordered by their own times, in whole milliseconds, and by
// stream sequence. If cardID is not empty, it yields only the traces under that card. If a trace
// id has several contents under one card, it yields the one that was received first. It ends
// after the first error.
func (r Reader) AgentTraces(ctx context.Context, agentID, cardID string) iter.Seq2[*StoredTrace, error] {
	return each[StoredTrace](ctx, r.db, fmt.Sprintf("the traces of agent %q", agentID), queryAgentTraces, seriesOf(agentID, cardID)...)
}

// CardsOf returns the bytes of the registered cards that an agent's traces name, by card_id.
func (r Reader) CardsOf(ctx context.Context, agentID string) (map[string][]byte, error) {
	type row struct {
		CardID string `ch:"card_id"`
		Raw    []byte `ch:"raw"`
	}
	cards := map[string][]byte{}
	for card, err := range each[row](ctx, r.db, fmt.Sprintf("the cards of agent %q", agentID), queryAgentCards, clickhouse.Named("agent", agentID)) {
		if err != nil {
			return nil, err
		}
		cards[card.CardID] = card.Raw
	}
	return cards, nil
}
