package store

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// DriftReport is what is stored about one series, that is, an agent under a card.
type DriftReport struct {
	State     DriftState      // the current state
	Baselines []DriftBaseline // oldest first
	Points    []DriftPoint    // the newest ones, oldest first
	Alerts    []DriftAlert    // oldest first
}

// DriftOf reports on an agent, under one card or, if cardID is empty, under each card. points
// limits the number of the newest points. It returns nothing for an agent without drift states.
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

// AgentTraces yields an agent's traces, ordered by their own times, in whole milliseconds, and by
// stream sequence. If cardID is not empty, it yields only the traces under that card. If a trace
// id has several contents under one card, it yields the one that was received first. It ends
// after the first error.
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

// storedCard holds a card's bytes.
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
