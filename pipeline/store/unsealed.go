package store

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/plumbline/plumbline/schema"
)

// Unsealed is a session with records that are in no bundle, or a session that is held.
type Unsealed struct {
	Owned
	AgentID    string    `ch:"agent_id"`
	SessionID  string    `ch:"session_id"`
	Traces     uint64    `ch:"traces"` // of the range that are stored and in no bundle
	FirstEvent time.Time `ch:"first_event"`
	LastEvent  time.Time `ch:"last_event"`

	Held string // why the session is held; empty if it is not
}

// UnsealedSessions returns the sessions that have records with event times within [from, to) which
// are in no bundle, and those that are held, ordered by agent and session. If agentID is empty, it
// returns those of every agent. A zero time is no bound.
func (r Reader) UnsealedSessions(ctx context.Context, agentID string, from, to time.Time) ([]Unsealed, error) {
	if from = within(from); to.IsZero() {
		to = schema.LatestTime
	}
	to = within(to)
	args := []any{clickhouse.Named("agent", agentID), clickhouse.Named("from", from.UnixNano()), clickhouse.Named("to", to.UnixNano())}
	found, err := read[Unsealed](ctx, r.db, "the records in no bundle", queryUnsealedTraces,
		append(args, clickhouse.Named("from_hour", eventHour(from)), clickhouse.Named("to_hour", eventHour(to)))...)
	if err != nil {
		return nil, err
	}
	held, err := read[Session](ctx, r.db, "the held sessions", queryHeldSessions, args...)
	if err != nil {
		return nil, err
	}
	for _, h := range held {
		same := func(u Unsealed) bool { return u.AgentID == h.AgentID && u.SessionID == h.SessionID }
		if i := slices.IndexFunc(found, same); i >= 0 {
			found[i].Held = h.Reason
			continue
		}
		found = append(found, Unsealed{AgentID: h.AgentID, SessionID: h.SessionID, FirstEvent: h.FirstEvent, LastEvent: h.LastEvent, Held: h.Reason})
	}
	slices.SortFunc(found, func(a, b Unsealed) int {
		return cmp.Or(cmp.Compare(a.AgentID, b.AgentID), cmp.Compare(a.SessionID, b.SessionID))
	})
	return found, nil
}
