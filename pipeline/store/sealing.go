package store

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/plumbline/plumbline/schema"
)

// The statuses of a session.
const (
	SessionOpen   = "open"
	SessionSealed = "sealed"
	SessionHeld   = "held" // rows and receipts differ: nothing is sealed until that is resolved
)

// Session is what the exporter knows about one session.
type Session struct {
	Owned
	AgentID       string    `ch:"agent_id"`
	SessionID     string    `ch:"session_id"`
	Version       uint64    `ch:"version"` // grows with every change: a read returns the highest
	Status        string    `ch:"status"`
	Reason        string    `ch:"reason"` // why it was sealed or held
	Traces        uint64    `ch:"traces"`
	Bundles       uint32    `ch:"bundles"`
	Ended         bool      `ch:"ended"`
	FirstEvent    time.Time `ch:"first_event"`
	LastEvent     time.Time `ch:"last_event"`
	FirstSequence uint64    `ch:"first_sequence"`
	LastSequence  uint64    `ch:"last_sequence"`
	UpdatedAt     time.Time `ch:"updated_at"`
}

// InsertSessions stores sessions. A read returns the highest version of a session.
func (s *Store) InsertSessions(ctx context.Context, sessions []Session) error {
	return insertRows(ctx, s, "sessions", sessions)
}

// Bundle is one sealed AIVS bundle.
type Bundle struct {
	Owned
	AgentID        string        `ch:"agent_id"`
	SessionID      string        `ch:"session_id"`
	Part           uint32        `ch:"part"` // from 1
	SHA256         schema.Digest `ch:"sha256"`
	LastPart       bool          `ch:"last_part"`
	Path           string        `ch:"path"` // within the bundle directory
	Bytes          uint64        `ch:"bytes"`
	ActionCount    uint64        `ch:"action_count"` // rows of the audit log
	TraceCount     uint64        `ch:"trace_count"`
	Redactions     uint64        `ch:"redactions"`
	FirstEvent     time.Time     `ch:"first_event"`
	LastEvent      time.Time     `ch:"last_event"`
	FirstSequence  uint64        `ch:"first_sequence"`
	LastSequence   uint64        `ch:"last_sequence"`
	TraceIDs       []string      `ch:"trace_ids"`
	ChainHash      string        `ch:"chain_hash"`      // hexadecimal
	PreviousSHA256 string        `ch:"previous_sha256"` // hexadecimal; empty in the first part
	KeyID          string        `ch:"key_id"`
	Reason         string        `ch:"reason"` // ended, idle, requested, schedule, rotation
	ExportedAt     time.Time     `ch:"exported_at"`
}

// InsertBundles stores bundles. It is idempotent: duplicates collapse.
func (s *Store) InsertBundles(ctx context.Context, bundles []Bundle) error {
	return insertRows(ctx, s, "bundles", bundles)
}

// Bundles returns the bundles of a session, ordered by part. If agentID is empty, it returns
// those of every session.
func (s *Store) Bundles(ctx context.Context, agentID, sessionID string) ([]Bundle, error) {
	bundles, err := readRows[Bundle](ctx, s, queryBundles,
		clickhouse.Named("agent", agentID), clickhouse.Named("session", sessionID), clickhouse.Named("trace", ""))
	if err != nil {
		return nil, fmt.Errorf("read bundles: %w", err)
	}
	return bundles, nil
}

// SealRun is one attempt to seal a session, with every row that differs from its receipt.
type SealRun struct {
	Owned
	AgentID    string    `ch:"agent_id"`
	SessionID  string    `ch:"session_id"`
	RunID      string    `ch:"run_id"`
	StartedAt  time.Time `ch:"started_at"`
	FinishedAt time.Time `ch:"finished_at"`
	Outcome    string    `ch:"outcome"` // sealed, held, failed
	Reason     string    `ch:"reason"`
	Traces     uint64    `ch:"traces"`
	Cut        uint64    `ch:"cut"`          // highest stream sequence covered
	Changed    []string  `ch:"changed"`      // trace ids whose bytes differ from their receipt
	Missing    []string  `ch:"missing"`      // digests with a receipt but without a row, hexadecimal
	Foreign    []string  `ch:"foreign_rows"` // trace ids without a receipt
	SHA256     string    `ch:"sha256"`       // hexadecimal; empty unless sealed
}

// InsertSealRuns stores attempts. It is idempotent: duplicates collapse.
func (s *Store) InsertSealRuns(ctx context.Context, runs []SealRun) error {
	return insertRows(ctx, s, "seal_runs", runs)
}
