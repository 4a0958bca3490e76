package rows

import (
	"context"
	"slices"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// The queries of an agent's page. The agent is a filter of each, and the caller has checked that the reader
// may see it.
var (
	queryAlerts        = query("agent_alerts")
	querySeries        = query("agent_series")
	querySeen          = query("agent_seen")
	queryPoints        = query("agent_points")
	queryMeasures      = query("agent_measures")
	queryBaseline      = query("agent_baseline")
	queryCards         = query("agent_cards")
	queryAgentProblems = query("agent_problems")
	queryAgentUnjudged = query("agent_unjudged")
)

// Alerts returns the alerts of drift of an agent, the open ones first and then the newest, at most limit.
func (r *Reader) Alerts(ctx context.Context, agent string, limit int) ([]Alert, error) {
	return read[Alert](ctx, r, "the alerts of an agent", queryAlerts, argument("agent", agent), argument("limit", limit))
}

// Series is an agent under one card, as drift measures it.
type Series struct {
	CardID    string    `ch:"card_id"`
	LastEvent time.Time `ch:"last_event"` // by the agent's clock
}

// Series returns the series of an agent, the latest first.
func (r *Reader) Series(ctx context.Context, agent string) ([]Series, error) {
	return read[Series](ctx, r, "the series of an agent", querySeries, argument("agent", agent))
}

// Span selects the traces of an agent by their own times, [From, To), and by their card, if it is not empty. Step
// divides it for a chart.
type Span struct {
	AgentID, CardID string
	From, To        time.Time
	Step            time.Duration
}

// args binds the span.
func (s Span) args() []any {
	return []any{argument("agent", s.AgentID), argument("card", s.CardID),
		argument("from", s.From.Unix()), argument("to", s.To.Unix()), argument("step", max(1, int64(s.Step.Seconds()))),
		argument("from_hour", hour(s.From)), argument("to_hour", hour(s.To))}
}

func hour(at time.Time) uint32 { return uint32(max(0, at.Unix()/3600)) }

// Seen says what there is within a span.
type Seen struct {
	Traces   uint64    `ch:"traces"`
	First    time.Time `ch:"first"`
	Last     time.Time `ch:"last"`
	Received time.Time `ch:"received"` // when the broker took the last one
}

// Seen returns what there is within a span.
func (r *Reader) Seen(ctx context.Context, s Span) (Seen, error) {
	seen, _, err := first[Seen](ctx, r, "the traces of an agent", querySeen, s.args()...)
	return seen, err
}

// Point is the similarity of an agent's traces to its baseline within one step.
type Point struct {
	Step      int64   `ch:"step"`
	Traces    uint64  `ch:"traces"`
	Compared  uint64  `ch:"compared"` // traces with a similarity: Mean and Lowest are theirs
	Mean      float64 `ch:"mean"`
	Lowest    float64 `ch:"lowest"`
	Low       uint64  `ch:"low"` // below the threshold
	Drifting  uint64  `ch:"drifting"`
	Learning  uint64  `ch:"learning"` // part of the baseline
	Threshold float64 `ch:"limit_below"`
}

// Points returns the similarity within each step of a span in which there are traces.
func (r *Reader) Points(ctx context.Context, s Span) ([]Point, error) {
	return read[Point](ctx, r, "the drift of an agent", queryPoints, s.args()...)
}

// Measured counts the events of the measures of AAP section 8.5.
type Measured struct {
	Step        int64    `ch:"step"`
	Traces      uint64   `ch:"traces"`
	Denials     uint64   `ch:"denials"`
	Escalations uint64   `ch:"escalations"`
	Outside     uint64   `ch:"outside_bounds"` // actions outside the card's bounded actions that are no denial
	Unescalated uint64   `ch:"unescalated"`    // of these
	WithCard    uint64   `ch:"with_card"`
	Undeclared  uint64   `ch:"undeclared"`     // of these: with a value that the card does not declare
	NewTools    uint64   `ch:"new_tools"`      // of these: with an action that neither the baseline nor the card names
	Deciding    uint64   `ch:"deciding"`       // with a card, and no denials
	Applied     []uint64 `ch:"applied_values"` // of these: how many apply each of the values of Compared
	Acting      uint64   `ch:"acting"`         // decisions to act whose execution is known
	Errors      uint64   `ch:"errors"`         // of these
	Executions  uint64   `ch:"executions"`
	Cost        float64  `ch:"cost"` // cents of all of these
	Confident   uint64   `ch:"confident"`
	Confidence  float64  `ch:"confidence_sum"` // of all of these
}

// Compared is what a baseline has, as far as its traces alone do not say it.
type Compared struct {
	Tools  []string // keys of its action names
	Values []string // that are counted where the card declares them
}

func (c Compared) args() []any {
	return []any{argument("tools", append([]string{}, c.Tools...)), argument("values", append([]string{}, c.Values...))}
}

// Measures returns the counts within each step of a span in which there are traces.
func (r *Reader) Measures(ctx context.Context, s Span, with Compared) ([]Measured, error) {
	return read[Measured](ctx, r, "the measures of an agent", queryMeasures, slices.Concat(s.args(), with.args(), []any{argument("baseline", uint8(0)), argument("digests", []string{})})...)
}

// Baseline is what drift compares an agent under a card with.
type Baseline struct {
	ID       schema.Digest `ch:"baseline_id"`
	Mode     string        `ch:"mode"`
	FormedAt time.Time     `ch:"formed_at"`
	Traces   uint32        `ch:"traces"`
	Digests  []string      `ch:"trace_digests"` // none where the baseline is made of sessions
	Features []string      `ch:"feature_names"` // of its centroid: kind:name
}

// Baseline returns the newest baseline of an agent under a card, or nil.
func (r *Reader) Baseline(ctx context.Context, agent, card string) (*Baseline, error) {
	baseline, found, err := first[Baseline](ctx, r, "the baseline of an agent", queryBaseline, argument("agent", agent), argument("card", card))
	if err != nil || !found {
		return nil, err
	}
	return &baseline, nil
}

// MeasuresOf returns the counts over the traces of a baseline that are still stored.
func (r *Reader) MeasuresOf(ctx context.Context, agent, card string, b *Baseline, with Compared) (Measured, error) {
	s := Span{AgentID: agent, CardID: card, From: time.Unix(0, 0), To: b.FormedAt.Add(time.Hour)}
	counts, _, err := first[Measured](ctx, r, "the measures of a baseline", queryMeasures, slices.Concat(s.args(), with.args(), []any{argument("baseline", uint8(1)), argument("digests", append([]string{}, b.Digests...))})...)
	return counts, err
}

// Card is a registered card.
type Card struct {
	CardID       string     `ch:"card_id"`
	IssuedAt     time.Time  `ch:"issued_at"`
	ExpiresAt    *time.Time `ch:"expires_at"`
	RegisteredAt time.Time  `ch:"registered_at"`
	RevokedAt    *time.Time `ch:"revoked_at"`
	Reason       string     `ch:"revocation_reason"`
	Raw          string     `ch:"raw"`
}

// Cards returns the cards of an agent, the newest first, at most limit.
func (r *Reader) Cards(ctx context.Context, agent string, limit int) ([]Card, error) {
	return read[Card](ctx, r, "the cards of an agent", queryCards, argument("agent", agent), argument("limit", limit))
}

// Problem is one violation, finding or session finding.
type Problem struct {
	Time      time.Time `ch:"time"`
	Source    string    `ch:"source"` // violation, finding or session_finding
	Type      string    `ch:"type"`
	Severity  string    `ch:"severity"`
	Message   string    `ch:"message"`
	Field     string    `ch:"field"`
	SessionID string    `ch:"session_id"`
	TraceID   string    `ch:"trace_id"`
	Digest    string    `ch:"digest"` // empty for a session finding
}

// AgentProblems returns the newest problems of the traces of a span, and of the sessions judged within it, at most limit.
func (r *Reader) AgentProblems(ctx context.Context, s Span, limit int) ([]Problem, error) {
	return read[Problem](ctx, r, "the problems of an agent", queryAgentProblems, append(s.args(), argument("limit", limit))...)
}

// AgentUnjudged returns how many traces of a span, of any card, could not be judged.
func (r *Reader) AgentUnjudged(ctx context.Context, s Span) (uint64, error) {
	counts, _, err := first[Unjudged](ctx, r, "an agent's traces that could not be judged", queryAgentUnjudged, s.args()...)
	return counts.Traces, err
}
