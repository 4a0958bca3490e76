package store

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/plumbline/plumbline/schema"
)

// The queries of the audit (check --deep) over what is stored.
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

// AccountedTrace is a visible row of table traces without its bytes: the row's own columns, and
// the hash of the stored bytes. Raw and Verdict are nil.
type AccountedTrace struct {
	StoredTrace
	Actual schema.Digest `ch:"actual"` // SHA-256 of the stored bytes
}

// AccountedTraces yields every trace in stream order. ClickHouse sorts, on disk if it must, so
// this process holds no rows in memory.
func (s *Store) AccountedTraces(ctx context.Context) iter.Seq2[*AccountedTrace, error] {
	return described("read the traces", eachRow[AccountedTrace](ctx, s, queryAccountedTraces))
}

// TracesByDigest returns the traces stored under the given digests. Pass at most a few thousand.
func (s *Store) TracesByDigest(ctx context.Context, digests []schema.Digest) ([]AccountedTrace, error) {
	rows, err := readRows[AccountedTrace](ctx, s, queryTracesByDigest, clickhouse.Named("digests", hexadecimal(digests)))
	if err != nil {
		return nil, fmt.Errorf("look for %d traces: %w", len(digests), err)
	}
	return rows, nil
}

// JudgedTrace is a verdict: its identity, and its trace's position in the stream.
type JudgedTrace struct {
	Owned
	VerdictKey
	StreamCreated time.Time `ch:"stream_created"`
	Sequence      uint64    `ch:"stream_sequence"`
	AgentID       string    `ch:"agent_id"`
	SessionID     string    `ch:"session_id"`
	TraceID       string    `ch:"trace_id"`
	StoredID      string    `ch:"verdict_id"` // as ClickHouse computes it: ID in hexadecimal
}

// JudgedTraces yields every verdict, duplicates included, in the stream order of the traces.
func (s *Store) JudgedTraces(ctx context.Context) iter.Seq2[*JudgedTrace, error] {
	return described("read the verdicts", eachRow[JudgedTrace](ctx, s, queryJudgedTraces))
}

// JudgedDigests returns which of the digests have a verdict. Pass at most a few thousand.
func (s *Store) JudgedDigests(ctx context.Context, digests []schema.Digest) (map[schema.Digest]bool, error) {
	return s.digestsOf(ctx, "verdicts", queryJudgedDigests, digests)
}

// MeasuredTrace is a drift point: its trace, and the trace's position in the stream.
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

// MeasuredTraces yields every drift point, duplicates included, in the stream order of the
// traces.
func (s *Store) MeasuredTraces(ctx context.Context) iter.Seq2[*MeasuredTrace, error] {
	return described("read the drift points", eachRow[MeasuredTrace](ctx, s, queryMeasuredTraces))
}

// MeasuredDigests returns which of the digests have a drift point. Pass at most a few thousand.
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

// AccountedLetter is the dead letter of a record that was in the stream, without its bytes.
type AccountedLetter struct {
	Owned
	OriginSequence uint64        `ch:"origin_sequence"`
	Digest         schema.Digest `ch:"digest"`
	Actual         schema.Digest `ch:"actual"` // SHA-256 of the stored bytes
	AgentID        string        `ch:"agent_id"`
	TraceID        string        `ch:"trace_id"`
	Reason         string        `ch:"reason"`
}

// AccountedLetters yields the dead letters of the stream in stream order.
func (s *Store) AccountedLetters(ctx context.Context) iter.Seq2[*AccountedLetter, error] {
	return described("read the dead letters", eachRow[AccountedLetter](ctx, s, queryAccountedLetters))
}

// SessionPlace is a trace's position in its session.
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

// SessionPlaces yields the position of every trace, session by session, ordered by agent and
// session.
func (s *Store) SessionPlaces(ctx context.Context) iter.Seq2[*SessionPlace, error] {
	return described("read the sessions of traces", eachRow[SessionPlace](ctx, s, querySessionPlaces))
}

// RecordedSessions yields the sessions for which the exporter recorded bundles.
func (s *Store) RecordedSessions(ctx context.Context) iter.Seq2[*Session, error] {
	return described("read the sessions", eachRow[Session](ctx, s, queryRecordedSessions))
}

// EachBundle yields every bundle, ordered by agent, session and part.
func (s *Store) EachBundle(ctx context.Context) iter.Seq2[*Bundle, error] {
	return described("read bundles", eachRow[Bundle](ctx, s, queryBundles,
		clickhouse.Named("agent", ""), clickhouse.Named("session", ""), clickhouse.Named("trace", "")))
}

// OperatorEntries yields the rows of the operator's ledger, ordered by file and number.
func (s *Store) OperatorEntries(ctx context.Context) iter.Seq2[*LedgerEntry, error] {
	return described("read the ledger", eachRow[LedgerEntry](ctx, s, queryOperatorLedger))
}

// LedgerReached returns the highest stream sequence that is a row of the operator's ledger. It
// counts only entries of the stream that was created at the given time.
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

// described adds to an error what was being done.
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
