package store

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/plumbline/plumbline/schema"
)

// The queries that account for what is stored.
var (
	queryAccountedLetters = mustQuery("accounted_letters")
	queryAccountedTraces  = mustQuery("accounted_traces")
	queryJudgedDigests    = mustQuery("judged_digests")
	queryJudgedTraces     = mustQuery("judged_traces")
	queryLedgerReached    = mustQuery("ledger_reached")
	queryMeasuredDigests  = mustQuery("measured_digests")
	queryMeasuredTraces   = mustQuery("measured_traces")
	queryOperatorLedger   = mustQuery("operator_ledger")
	queryRecordedSessions = mustQuery("recorded_sessions")
	querySessionPlaces    = mustQuery("session_places")
	queryTracesByDigest   = mustQuery("traces_by_digest")
)

// AccountedTrace is a visible row of traces without its bytes: what it says, and
// what its bytes are. Raw and Verdict are nil.
type AccountedTrace struct {
	StoredTrace
	Actual schema.Digest `ch:"actual"` // SHA-256 of the stored bytes
}

// AccountedTraces yields every trace in order of its place in the stream. The
// database sorts, on disk where it must; nothing is held here.
func (s *Store) AccountedTraces(ctx context.Context) iter.Seq2[*AccountedTrace, error] {
	return described("read the traces", eachRow[AccountedTrace](ctx, s, queryAccountedTraces))
}

// TracesByDigest returns the traces stored under some of the digests, some thousand
// at most.
func (s *Store) TracesByDigest(ctx context.Context, digests []schema.Digest) ([]AccountedTrace, error) {
	rows, err := readRows[AccountedTrace](ctx, s, queryTracesByDigest, clickhouse.Named("digests", hexadecimal(digests)))
	if err != nil {
		return nil, fmt.Errorf("look for %d traces: %w", len(digests), err)
	}
	return rows, nil
}

// JudgedTrace is a verdict by its identity and its trace's place.
type JudgedTrace struct {
	Owned
	VerdictKey
	StreamCreated time.Time `ch:"stream_created"`
	Sequence      uint64    `ch:"stream_sequence"`
	AgentID       string    `ch:"agent_id"`
	SessionID     string    `ch:"session_id"`
	TraceID       string    `ch:"trace_id"`
	StoredID      string    `ch:"verdict_id"` // as the database computes it: ID in hexadecimal
}

// JudgedTraces yields every verdict, copies too, in order of its trace's place in
// the stream.
func (s *Store) JudgedTraces(ctx context.Context) iter.Seq2[*JudgedTrace, error] {
	return described("read the verdicts", eachRow[JudgedTrace](ctx, s, queryJudgedTraces))
}

// JudgedDigests returns which of the digests, some thousand at most, have a
// verdict.
func (s *Store) JudgedDigests(ctx context.Context, digests []schema.Digest) (map[schema.Digest]bool, error) {
	return s.digestsOf(ctx, "verdicts", queryJudgedDigests, digests)
}

// MeasuredTrace is a drift point by its trace and the place of it.
type MeasuredTrace struct {
	Owned
	StreamCreated time.Time     `ch:"stream_created"`
	Sequence      uint64        `ch:"stream_sequence"`
	AgentID       string        `ch:"agent_id"`
	SessionID     string        `ch:"session_id"`
	TraceID       string        `ch:"trace_id"`
	TraceDigest   schema.Digest `ch:"trace_digest"`
	Received      time.Time     `ch:"received_at"`
}

// MeasuredTraces yields every drift point, copies too, in order of its trace's place in
// the stream.
func (s *Store) MeasuredTraces(ctx context.Context) iter.Seq2[*MeasuredTrace, error] {
	return described("read the drift points", eachRow[MeasuredTrace](ctx, s, queryMeasuredTraces))
}

// MeasuredDigests returns which of the digests, some thousand at most, have a drift
// point.
func (s *Store) MeasuredDigests(ctx context.Context, digests []schema.Digest) (map[schema.Digest]bool, error) {
	return s.digestsOf(ctx, "drift points", queryMeasuredDigests, digests)
}

func (s *Store) digestsOf(ctx context.Context, what, query string, digests []schema.Digest) (map[schema.Digest]bool, error) {
	type row struct {
		Owned
		Digest schema.Digest `ch:"trace_digest"`
	}
	found := make(map[schema.Digest]bool, len(digests))
	for r, err := range eachRow[row](ctx, s, query, clickhouse.Named("digests", hexadecimal(digests))) {
		if err != nil {
			return nil, fmt.Errorf("look for the %s of %d traces: %w", what, len(digests), err)
		}
		found[r.Digest] = true
	}
	return found, nil
}

// AccountedLetter is a dead letter of a record that was on the stream, without its
// bytes.
type AccountedLetter struct {
	Owned
	OriginSequence uint64        `ch:"origin_sequence"`
	Digest         schema.Digest `ch:"digest"`
	Actual         schema.Digest `ch:"actual"` // SHA-256 of the stored bytes
	AgentID        string        `ch:"agent_id"`
	TraceID        string        `ch:"trace_id"`
	Reason         string        `ch:"reason"`
}

// AccountedLetters yields the dead letters of the stream in its order.
func (s *Store) AccountedLetters(ctx context.Context) iter.Seq2[*AccountedLetter, error] {
	return described("read the dead letters", eachRow[AccountedLetter](ctx, s, queryAccountedLetters))
}

// SessionPlace is a trace's place in its session.
type SessionPlace struct {
	Owned
	AgentID       string      `ch:"agent_id"`
	SessionID     string      `ch:"session_id"`
	StreamCreated time.Time   `ch:"stream_created"`
	Sequence      uint64      `ch:"stream_sequence"`
	TraceID       string      `ch:"trace_id"`
	Received      time.Time   `ch:"received_at"`
	RetainUntil   RetainUntil `ch:"retain_until"`
}

// SessionPlaces yields every trace's place, one session after the other in order of
// agent and session.
func (s *Store) SessionPlaces(ctx context.Context) iter.Seq2[*SessionPlace, error] {
	return described("read the sessions of traces", eachRow[SessionPlace](ctx, s, querySessionPlaces))
}

// RecordedSessions yields the sessions of which the exporter recorded bundles.
func (s *Store) RecordedSessions(ctx context.Context) iter.Seq2[*Session, error] {
	return described("read the sessions", eachRow[Session](ctx, s, queryRecordedSessions))
}

// EachBundle yields every bundle in order of agent, session and part.
func (s *Store) EachBundle(ctx context.Context) iter.Seq2[*Bundle, error] {
	return described("read bundles", eachRow[Bundle](ctx, s, queryBundles,
		clickhouse.Named("agent", ""), clickhouse.Named("session", ""), clickhouse.Named("trace", "")))
}

// OperatorEntries yields the rows of the operator's ledger in order of file and
// number.
func (s *Store) OperatorEntries(ctx context.Context) iter.Seq2[*LedgerEntry, error] {
	return described("read the ledger", eachRow[LedgerEntry](ctx, s, queryOperatorLedger))
}

// LedgerReached returns the highest sequence, of the stream made at that time, that
// is a row of the operator's ledger.
func (s *Store) LedgerReached(ctx context.Context, streamCreated time.Time) (uint64, error) {
	type row struct {
		Reached uint64 `ch:"reached"`
	}
	rows, err := readRows[row](ctx, s, queryLedgerReached, clickhouse.Named("created", streamCreated.UnixNano()))
	if err != nil {
		return 0, fmt.Errorf("ask how far the ledger is: %w", err)
	}
	return rows[0].Reached, nil
}

func hexadecimal(digests []schema.Digest) []string {
	texts := make([]string, len(digests))
	for i, d := range digests {
		texts[i] = d.String()
	}
	return texts
}

// described says what was being done when an error came.
func described[T any](doing string, rows iter.Seq2[*T, error]) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for row, err := range rows {
			if err != nil {
				err = fmt.Errorf("%s: %w", doing, err)
			}
			if !yield(row, err) {
				return
			}
		}
	}
}
