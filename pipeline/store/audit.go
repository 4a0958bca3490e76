package store

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/plumbline/plumbline/schema"
)

// What is read here is for the audit (check --deep).

// AccountedTrace is a visible row of table traces without its bytes: the row's own columns, and
// the hash of the stored bytes. Raw and Verdict are nil.
type AccountedTrace struct {
	StoredTrace
	Actual schema.Digest `ch:"actual"` // SHA-256 of the stored bytes
}

// AccountedTraces yields every trace in stream order. ClickHouse sorts, on disk if it must, so
// this process holds no rows in memory.
func (r Reader) AccountedTraces(ctx context.Context) iter.Seq2[*AccountedTrace, error] {
	return each[AccountedTrace](ctx, r.db, "the traces", queryAccountedTraces)
}

// TracesByDigest returns the traces stored under the given digests. Pass at most a few thousand.
func (r Reader) TracesByDigest(ctx context.Context, digests []schema.Digest) ([]AccountedTrace, error) {
	return read[AccountedTrace](ctx, r.db, fmt.Sprintf("%d traces by their digests", len(digests)), queryTracesByDigest,
		clickhouse.Named("digests", hexadecimal(digests)))
}

// TracePlace is a trace's position in the stream and in its session.
type TracePlace struct {
	Owned
	StreamCreated time.Time `ch:"stream_created"`
	Sequence      uint64    `ch:"stream_sequence"`
	AgentID       string    `ch:"agent_id"`
	SessionID     string    `ch:"session_id"`
	TraceID       string    `ch:"trace_id"`
}

// JudgedTrace is a verdict: its identity, and the place of its trace.
type JudgedTrace struct {
	TracePlace
	VerdictKey
	StoredID string `ch:"verdict_id"` // as ClickHouse computes it: ID in hexadecimal
}

// JudgedTraces yields every verdict, duplicates included, in the stream order of the traces.
func (r Reader) JudgedTraces(ctx context.Context) iter.Seq2[*JudgedTrace, error] {
	return each[JudgedTrace](ctx, r.db, "the verdicts", queryJudgedTraces)
}

// MeasuredTrace is a drift point: its trace, and the place of the trace.
type MeasuredTrace struct {
	TracePlace
	TraceDigest schema.Digest `ch:"trace_digest"`
	Received    time.Time     `ch:"received_at"`
}

// MeasuredTraces yields every drift point, duplicates included, in the stream order of the
// traces.
func (r Reader) MeasuredTraces(ctx context.Context) iter.Seq2[*MeasuredTrace, error] {
	return each[MeasuredTrace](ctx, r.db, "the drift points", queryMeasuredTraces)
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
func (r Reader) AccountedLetters(ctx context.Context) iter.Seq2[*AccountedLetter, error] {
	return each[AccountedLetter](ctx, r.db, "the dead letters", queryAccountedLetters)
}

// SessionPlace is a trace's place, and how long it is kept.
type SessionPlace struct {
	TracePlace
	Received    time.Time   `ch:"received_at"`
	RetainUntil RetainUntil `ch:"retain_until"`
}

// SessionPlaces yields the position of every trace, session by session, ordered by agent and
// session.
func (r Reader) SessionPlaces(ctx context.Context) iter.Seq2[*SessionPlace, error] {
	return each[SessionPlace](ctx, r.db, "the sessions of traces", querySessionPlaces)
}

// RecordedSessions yields the sessions for which the exporter recorded bundles.
func (r Reader) RecordedSessions(ctx context.Context) iter.Seq2[*Session, error] {
	return each[Session](ctx, r.db, "the sessions", queryRecordedSessions)
}

// EachBundle yields every bundle, ordered by agent, session and part.
func (r Reader) EachBundle(ctx context.Context) iter.Seq2[*Bundle, error] {
	return each[Bundle](ctx, r.db, "the bundles", queryBundles, bundlesOf("", "", "")...)
}

// OperatorEntries yields the rows of the operator's ledger, ordered by file and number.
func (r Reader) OperatorEntries(ctx context.Context) iter.Seq2[*LedgerEntry, error] {
	return each[LedgerEntry](ctx, r.db, "the ledger", queryOperatorLedger)
}

// LedgerReached returns the highest stream sequence that is a row of the operator's ledger. It
// counts only entries of the stream that was created at the given time.
func (r Reader) LedgerReached(ctx context.Context, streamCreated time.Time) (uint64, error) {
	type row struct {
		Reached uint64 `ch:"reached"`
	}
	rows, err := read[row](ctx, r.db, "the newest sequence of the ledger", queryLedgerReached, clickhouse.Named("created", streamCreated.UnixNano()))
	if err != nil {
		return 0, err
	}
	return rows[0].Reached, nil
}

// TraceDigests returns the digest of every visible trace. A record's bytes contain its agent and
// its id, so the digest alone identifies it.
func (r Reader) TraceDigests(ctx context.Context) ([]schema.Digest, error) {
	type row struct {
		Digest schema.Digest `ch:"digest"`
	}
	rows, err := read[row](ctx, r.db, "the digests of traces", queryTraceDigests)
	digests := make([]schema.Digest, len(rows))
	for i := range rows {
		digests[i] = rows[i].Digest
	}
	return digests, err
}
