package rows

import (
	"context"
	"time"

	"github.com/plumbline/plumbline/pipeline/store"
)

// The queries of the fleet's page.
var (
	queryRates     = query("rates")
	queryActive    = query("active_agents")
	queryProblems  = query("fleet_problems")
	queryDrifting  = query("drifting")
	queryDelays    = query("delays")
	queryUnsettled = query("unsettled")
	queryUnjudged  = query("unjudged")
)

// Minute is how many traces the broker received in one minute.
type Minute struct {
	At     time.Time `ch:"at"`
	Traces uint64    `ch:"traces"`
}

// Rates returns the minutes since a time in which traces were received, in order.
func (r *Reader) Rates(ctx context.Context, agents store.Agents, from time.Time) ([]Minute, error) {
	return read[Minute](ctx, r, "the rate of traces", queryRates, append(within(agents), since(from))...)
}

// Active is an agent with traces that were received since a time.
type Active struct {
	AgentID  string    `ch:"agent_id"`
	Traces   uint64    `ch:"traces"`
	LastSeen time.Time `ch:"last_seen"` // by the broker's clock

	AllAgents uint64 `ch:"all_agents"` // of all such agents, the same in each row
	AllTraces uint64 `ch:"all_traces"`
}

// Active returns the agents with the most traces since a time, at most limit.
func (r *Reader) Active(ctx context.Context, agents store.Agents, from time.Time, limit int) ([]Active, error) {
	return read[Active](ctx, r, "active agents", queryActive, append(within(agents), since(from), argument("limit", limit))...)
}

// ProblemCount counts problems of one type, or of one agent.
type ProblemCount struct {
	AgentID  string `ch:"agent_id"` // empty: the row is about a type
	Source   string `ch:"source"`   // violation, finding or session_finding
	Type     string `ch:"type"`
	Severity string `ch:"severity"` // LOW, MEDIUM, HIGH or CRITICAL
	Problems uint64 `ch:"problems"`
	Agents   uint64 `ch:"agents"`
	Critical uint64 `ch:"critical"`
	High     uint64 `ch:"high"`
}

// Problems counts the problems of traces that were received, and of sessions that were judged, since a
// time: the types first, then the agents, each with the most problems first and at most limit of them.
func (r *Reader) Problems(ctx context.Context, agents store.Agents, from time.Time, limit int) (types, of []ProblemCount, err error) {
	all, err := read[ProblemCount](ctx, r, "problems", queryProblems, append(within(agents), since(from), argument("limit", limit))...)
	for _, row := range all {
		if row.AgentID == "" {
			types = append(types, row)
		} else {
			of = append(of, row)
		}
	}
	return types, of, err
}

// Alert is an alert of drift as its newest event says.
type Alert struct {
	AgentID    string     `ch:"agent_id"`
	AlertID    string     `ch:"alert_id"`
	CardID     string     `ch:"card_id"`
	State      string     `ch:"state"` // opened, updated or closed
	Direction  string     `ch:"drift_direction"`
	OpenedAt   time.Time  `ch:"opened_at"`
	ClosedAt   *time.Time `ch:"closed_at"`
	Similarity float64    `ch:"similarity_score"`
	Threshold  float64    `ch:"threshold"`
	Traces     uint32     `ch:"count"`
	Summary    string     `ch:"summary"`
	Measures   []string   `ch:"measures"`
	LastTrace  string     `ch:"last_trace_id"`
	AllOpen    uint64     `ch:"all_open"`   // how many alerts are open, the same in each row
	AllAlerts  uint64     `ch:"all_alerts"` // of Alerts: how many there are, the same in each row
}

// Drifting returns the alerts of drift that are not closed, the newest first, at most limit.
func (r *Reader) Drifting(ctx context.Context, agents store.Agents, limit int) ([]Alert, error) {
	return read[Alert](ctx, r, "open alerts of drift", queryDrifting, append(within(agents), argument("limit", limit))...)
}

// Delay is how long traces that were received since a time waited for their first verdict, in seconds.
type Delay struct {
	Verdicts uint64  `ch:"verdicts"`
	Median   float64 `ch:"median"`
	Slow     float64 `ch:"slow"` // 99 of 100 had it sooner
}

// Delays returns the delay of the verdicts on traces that were received since a time.
func (r *Reader) Delays(ctx context.Context, agents store.Agents, from time.Time) (Delay, error) {
	delay, _, err := first[Delay](ctx, r, "the delay of verdicts", queryDelays, append(within(agents), since(from))...)
	return delay, err
}

// Unsettled counts what an operator must look at.
type Unsettled struct {
	Held        uint64 `ch:"held"`         // sessions whose rows and receipts differ
	DeadLetters uint64 `ch:"dead_letters"` // received since the time, and not marked as handled
}

// Unsettled returns the counts. Dead letters without an agent count only for readers of every agent.
func (r *Reader) Unsettled(ctx context.Context, agents store.Agents, from time.Time) (Unsettled, error) {
	counts, _, err := first[Unsettled](ctx, r, "held sessions and dead letters", queryUnsettled, append(within(agents), since(from))...)
	return counts, err
}

// Unjudged counts traces that could not be judged, because nobody has registered their card.
type Unjudged struct {
	Traces uint64   `ch:"traces"`
	Agents uint64   `ch:"agents"`
	Some   []string `ch:"some"` // up to five of the agents
}

// Unjudged returns the count of the traces that were received since a time.
func (r *Reader) Unjudged(ctx context.Context, agents store.Agents, from time.Time) (Unjudged, error) {
	counts, _, err := first[Unjudged](ctx, r, "traces that could not be judged", queryUnjudged, append(within(agents), since(from))...)
	return counts, err
}
