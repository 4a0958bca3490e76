package store

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// DriftReport is what is stored about one series: an agent under a card.
type DriftReport struct {
	State     DriftState      // where it stands
	Baselines []DriftBaseline // the oldest first
	Points    []DriftPoint    // the newest ones, the oldest of them first
	Alerts    []DriftAlert    // the oldest first
}

// DriftOf reports on an agent, under one card or, where cardID is empty, under
// each, with so many of its newest points at most. Nothing is stored of an agent
// that drift has not met.
func (s *Store) DriftOf(ctx context.Context, agentID, cardID string, points int) ([]DriftReport, error) {
	states, err := readRows[DriftState](ctx, s, queryAgentDriftStates, of(agentID, cardID)...)
	if err != nil {
		return nil, fmt.Errorf("read the drift states of agent %q: %w", agentID, err)
	}
	reports := make([]DriftReport, len(states))
	for i := range states {
		if reports[i], err = s.driftReport(ctx, states[i], points); err != nil {
			return nil, fmt.Errorf("read the drift of agent %q under card %q: %w", agentID, states[i].CardID, err)
		}
	}
	return reports, nil
}

func of(agentID, cardID string) []any {
	return []any{clickhouse.Named("agent", agentID), clickhouse.Named("card", cardID)}
}

func (s *Store) driftReport(ctx context.Context, state DriftState, points int) (r DriftReport, err error) {
	r.State = state
	series := of(state.AgentID, state.CardID)
	if r.Baselines, err = readRows[DriftBaseline](ctx, s, queryAgentDriftBaselines, series...); err != nil {
		return r, err
	}
	r.Points, err = readRows[DriftPoint](ctx, s, queryAgentDriftPoints, append(series, clickhouse.Named("limit", points))...)
	if err != nil {
		return r, err
	}
	slices.Reverse(r.Points)
	alerts, err := readRows[alertRow](ctx, s, queryAgentDriftAlerts, series...)
	for i := range alerts {
		r.Alerts = append(r.Alerts, alerts[i].alert())
	}
	return r, err
}

// AgentTraces yields an agent's traces in order of their own times, in whole
// milliseconds, and stream sequence; where cardID is not empty, those under that
// card. Of several contents of a trace id under a card it yields the first that
// came. It ends after the first error.
func (s *Store) AgentTraces(ctx context.Context, agentID, cardID string) iter.Seq2[*StoredTrace, error] {
	return func(yield func(*StoredTrace, error) bool) {
		for t, err := range eachRow[StoredTrace](ctx, s, queryAgentTraces, of(agentID, cardID)...) {
			if err != nil {
				yield(nil, fmt.Errorf("read the traces of agent %q: %w", agentID, err))
				return
			}
			if !yield(t, nil) {
				return
			}
		}
	}
}

// storedCard is a card's bytes.
type storedCard struct {
	CardID string `ch:"card_id"`
	Raw    []byte `ch:"raw"`
}

// CardsOf returns the bytes of the registered cards that an agent's traces name, by card_id.
func (s *Store) CardsOf(ctx context.Context, agentID string) (map[string][]byte, error) {
	rows, err := readRows[storedCard](ctx, s, queryAgentCards, clickhouse.Named("agent", agentID))
	if err != nil {
		return nil, fmt.Errorf("read the cards of agent %q: %w", agentID, err)
	}
	cards := make(map[string][]byte, len(rows))
	for _, row := range rows {
		cards[row.CardID] = row.Raw
	}
	return cards, nil
}
