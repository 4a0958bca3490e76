package store

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/schema"
)

// StoredTrace is a trace as it is stored: the evidence, its origin, and its current verdict.
type StoredTrace struct {
	Owned
	AgentID        string        `ch:"agent_id"`
	TraceID        string        `ch:"trace_id"`
	Digest         schema.Digest `ch:"digest"` // computed at insert: compare it with SHA-256 of Raw
	CardID         string        `ch:"card_id"`
	SessionID      string        `ch:"session_id"`
	SessionEnd     bool          `ch:"session_end"`
	SequenceNumber *uint64       `ch:"sequence_number"` // nil if the trace has none
	EventTime      time.Time     `ch:"event_time"`
	Received       time.Time     `ch:"received_at"`
	RetainUntil    RetainUntil   `ch:"retain_until"`
	StreamCreated  time.Time     `ch:"stream_created"`
	Sequence       uint64        `ch:"stream_sequence"`
	Partition      uint16        `ch:"stream_partition"`
	Raw            []byte        `ch:"raw"`

	Verdict *schema.Verdict // nil if there is none; always nil from TracesOfUnknownCards
}

// Meta returns what the pipeline knew about the trace when it was stored.
func (t *StoredTrace) Meta() Meta {
	return Meta{
		Received: t.Received, StreamCreated: t.StreamCreated, Sequence: t.Sequence,
		Partition: int(t.Partition), SessionID: t.SessionID, RetainUntil: t.RetainUntil.time(),
	}
}

// SessionKey names a session of this tenant.
type SessionKey struct {
	AgentID   string
	SessionID string
}

// SessionQuery asks for the traces of sessions with event times within From..To. Pass at most a
// few hundred sessions.
type SessionQuery struct {
	Sessions []SessionKey
	From, To time.Time
}

func (q *SessionQuery) args() []any {
	agents, sessions := make([]string, len(q.Sessions)), make([]string, len(q.Sessions))
	for i, k := range q.Sessions {
		agents[i], sessions[i] = k.AgentID, k.SessionID
	}
	return []any{
		clickhouse.Named("agents", agents), clickhouse.Named("sessions", sessions),
		clickhouse.Named("from", EventHour(q.From)), clickhouse.Named("to", EventHour(q.To)),
	}
}

// PartQuery asks for traces of one session of any length. It selects the traces whose sequences
// lie within (After, Cut] and those with one of the digests. Their event times lie within
// From..To.
type PartQuery struct {
	Session    SessionKey
	After, Cut uint64
	Digests    []string // hexadecimal; at most a few thousand
	From, To   time.Time
}

func (q *PartQuery) args() []any {
	return []any{
		clickhouse.Named("agent", q.Session.AgentID), clickhouse.Named("session", q.Session.SessionID),
		clickhouse.Named("after", q.After), clickhouse.Named("cut", q.Cut), clickhouse.Named("digests", q.Digests),
		clickhouse.Named("from", EventHour(q.From)), clickhouse.Named("to", EventHour(q.To)),
	}
}

// SessionTraces yields the traces of sessions, session by session, each session in order of event
// time and stream sequence. It ends after the first error.
func (s *Store) SessionTraces(ctx context.Context, q SessionQuery) iter.Seq2[*StoredTrace, error] {
	if len(q.Sessions) == 0 {
		return func(func(*StoredTrace, error) bool) {}
	}
	return s.judgedTraces(ctx, fmt.Sprintf("%d sessions", len(q.Sessions)), querySessionTraces, querySessionVerdicts, q.args())
}

// PartTraces yields the traces of a part of a session. It follows the rules of SessionTraces.
func (s *Store) PartTraces(ctx context.Context, q PartQuery) iter.Seq2[*StoredTrace, error] {
	return s.judgedTraces(ctx, fmt.Sprintf("a part of session %q", q.Session.SessionID), queryPartTraces, queryPartVerdicts, q.args())
}

// judgedTraces yields the result of one query, each trace with its verdict. A second query with
// the same arguments reads the verdicts meanwhile.
func (s *Store) judgedTraces(ctx context.Context, what, traces, verdicts string, args []any) iter.Seq2[*StoredTrace, error] {
	return func(yield func(*StoredTrace, error) bool) {
		var found []*StoredTrace
		var current map[schema.Digest]*schema.Verdict
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error {
			for t, err := range eachRow[StoredTrace](ctx, s, traces, args...) {
				if err != nil {
					return err
				}
				found = append(found, t)
			}
			return nil
		})
		group.Go(func() (err error) {
			current, err = s.currentVerdicts(ctx, verdicts, args)
			return err
		})
		if err := group.Wait(); err != nil {
			yield(nil, fmt.Errorf("read %s: %w", what, err))
			return
		}
		for _, t := range found {
			t.Verdict = current[t.Digest]
			if !yield(t, nil) {
				return
			}
		}
	}
}

// currentVerdicts maps the digests of traces to their verdicts. A record's bytes contain its
// agent and its id, so the digest alone identifies it.
func (s *Store) currentVerdicts(ctx context.Context, query string, args []any) (map[schema.Digest]*schema.Verdict, error) {
	verdicts := map[schema.Digest]*schema.Verdict{}
	for row, err := range eachRow[verdictRow](ctx, s, query, args...) {
		if err != nil {
			return nil, err
		}
		verdicts[row.TraceDigest] = row.verdict()
	}
	return verdicts, nil
}

// TracesOfUnknownCards yields up to limit traces that name one of the cards and were never
// judged, earliest first. It does not yield them again once their verdicts are stored
// (InsertVerdicts).
func (s *Store) TracesOfUnknownCards(ctx context.Context, cardIDs []string, limit int) iter.Seq2[*StoredTrace, error] {
	return func(yield func(*StoredTrace, error) bool) {
		if len(cardIDs) == 0 {
			return
		}
		rows := eachRow[StoredTrace](ctx, s, queryUnknownCardTraces,
			clickhouse.Named("cards", cardIDs), clickhouse.Named("limit", limit))
		for t, err := range rows {
			if err != nil {
				yield(nil, fmt.Errorf("read the traces of %d unknown cards: %w", len(cardIDs), err))
				return
			}
			if !yield(t, nil) {
				return
			}
		}
	}
}

// eachRow streams the rows of a query that selects the columns of T. It ends
// after the first error.
func eachRow[T any](ctx context.Context, s *Store, query string, args ...any) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		ctx, cancel := s.readContext(ctx)
		defer cancel()
		rows, err := s.conn.Query(ctx, query, append(args, clickhouse.Named("tenant", s.cfg.Tenant))...)
		if err != nil {
			yield(nil, err)
			return
		}
		defer rows.Close()
		var row T // every scan overwrites all of it
		members, err := membersOf(&row, rows.Columns())
		if err != nil {
			yield(nil, err)
			return
		}
		for rows.Next() {
			if err := rows.Scan(members...); err != nil {
				yield(nil, err)
				return
			}
			read := row
			if !yield(&read, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(nil, err)
		}
	}
}
