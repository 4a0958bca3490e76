package rows

import (
	"context"
	"time"

	"github.com/plumbline/plumbline/pipeline/store"
)

// The queries of the search.
var (
	querySessions      = query("sessions")
	querySessionStates = query("session_states")
	queryFoundAgents   = query("search_agents")
	queryFoundSessions = query("search_sessions")
	queryFoundTraces   = query("search_traces")
	queryFoundBundles  = query("search_bundles")
)

// Find selects rows by their agents and a text, and sessions by the times of their traces. An empty text finds the
// newest.
type Find struct {
	Agents   store.Agents
	Text     string
	From, To time.Time
	Limit    int
}

// args binds the selection.
func (f Find) args() []any {
	one := "" // whose rows an index finds
	if len(f.Agents.IDs) == 1 && len(f.Agents.Prefixes) == 0 {
		one = f.Agents.IDs[0]
	}
	return append(within(f.Agents), argument("agent", one), argument("text", f.Text),
		argument("from_hour", hour(f.From)), argument("to_hour", hour(f.To)), argument("limit", f.Limit))
}

// FoundAgent is an agent with a card, or with traces.
type FoundAgent struct {
	AgentID   string    `ch:"agent_id"`
	Cards     uint64    `ch:"cards"`
	LastEvent time.Time `ch:"last_event"` // 1970: drift has not measured it
}

// FindAgents returns the agents whose id contains the text.
func (r *Reader) FindAgents(ctx context.Context, f Find) ([]FoundAgent, error) {
	return read[FoundAgent](ctx, r, "found agents", queryFoundAgents, f.args()...)
}

// FindSessions returns the sessions whose id begins with the text. One that was never sealed or held is found by its
// whole id.
func (r *Reader) FindSessions(ctx context.Context, f Find) ([]Session, error) {
	return r.sessions(ctx, queryFoundSessions, f)
}

// FoundTrace is a stored trace.
type FoundTrace struct {
	AgentID    string    `ch:"agent_id"`
	TraceID    string    `ch:"trace_id"`
	SessionID  string    `ch:"session_id"`
	EventTime  time.Time `ch:"event_time"`
	Received   time.Time `ch:"received_at"`
	ActionType string    `ch:"action_type"`
	ActionName string    `ch:"action_name"`
	Digest     string    `ch:"digest"`
}

// FindTraces returns the traces whose id is the text.
func (r *Reader) FindTraces(ctx context.Context, f Find) ([]FoundTrace, error) {
	if f.Text == "" {
		return nil, nil
	}
	return read[FoundTrace](ctx, r, "found traces", queryFoundTraces, f.args()...)
}

// FoundBundle is a sealed bundle.
type FoundBundle struct {
	AgentID   string    `ch:"agent_id"`
	SessionID string    `ch:"session_id"`
	Part      uint32    `ch:"part"`
	LastPart  bool      `ch:"last_part"`
	SHA256    string    `ch:"named"`
	Path      string    `ch:"path"`
	Bytes     uint64    `ch:"bytes"`
	Traces    uint64    `ch:"trace_count"`
	SealedAt  time.Time `ch:"exported_at"`
}

// FindBundles returns the bundles of the session or with the trace whose id is the text, and those whose SHA-256 begins
// with it.
func (r *Reader) FindBundles(ctx context.Context, f Find) ([]FoundBundle, error) {
	return read[FoundBundle](ctx, r, "found bundles", queryFoundBundles, f.args()...)
}

// Session is a session with the state of its sealing.
type Session struct {
	AgentID   string    `ch:"agent_id"`
	SessionID string    `ch:"session_id"`
	Begin     time.Time `ch:"begin"` // of its traces within the times
	End       time.Time `ch:"end"`
	SessionState
}

// SessionState is the state of a session's sealing.
type SessionState struct {
	Traces  uint64 // that are stored
	Bundles uint64
	State   string // open, held or sealed
	Reason  string // why it is held
	Verdict string // on its sealed parts: proceed, review or deny; empty: there is none
}

// Sessions returns the sessions with traces within the times, the latest first.
func (r *Reader) Sessions(ctx context.Context, f Find) ([]Session, error) {
	return r.sessions(ctx, querySessions, f)
}

func (r *Reader) sessions(ctx context.Context, statement string, f Find) ([]Session, error) {
	sessions, err := read[Session](ctx, r, "sessions", statement, f.args()...)
	if err != nil || len(sessions) == 0 {
		return nil, err
	}
	states, err := r.SessionStates(ctx, sessions)
	for i := range sessions {
		sessions[i].SessionState = states[store.SessionKey{AgentID: sessions[i].AgentID, SessionID: sessions[i].SessionID}]
	}
	return sessions, err
}

// SessionStates returns the states of sessions by their agents and ids.
func (r *Reader) SessionStates(ctx context.Context, sessions []Session) (map[store.SessionKey]SessionState, error) {
	var agents, ids []string
	for _, s := range sessions {
		agents, ids = append(agents, s.AgentID), append(ids, s.SessionID)
	}
	type row struct {
		AgentID   string `ch:"agent_id"`
		SessionID string `ch:"session_id"`
		Traces    uint64 `ch:"traces"`
		Bundles   uint64 `ch:"bundles"`
		Verdict   uint8  `ch:"verdict_rank"`
		State     string `ch:"state"`
		Reason    string `ch:"reason"`
	}
	rows, err := read[row](ctx, r, "the states of sessions", querySessionStates, argument("agents", agents), argument("sessions", ids))
	states := map[store.SessionKey]SessionState{}
	for _, row := range rows {
		states[store.SessionKey{AgentID: row.AgentID, SessionID: row.SessionID}] = SessionState{row.Traces, row.Bundles, row.State, row.Reason, []string{"", "proceed", "review", "deny"}[min(3, row.Verdict)]}
	}
	return states, err
}
