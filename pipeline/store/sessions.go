package store

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/aap/session"
	"github.com/plumbline/plumbline/pipeline/database"
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
		Partition: int(t.Partition), SessionID: t.SessionID, RetainUntil: time.Time(t.RetainUntil),
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

// SessionTraces yields the traces of sessions, in any order: sorting in the database would cost more
// than sorting each session. It ends after the first error.
func (r Reader) SessionTraces(ctx context.Context, q SessionQuery) iter.Seq2[*StoredTrace, error] {
	if len(q.Sessions) == 0 {
		return func(func(*StoredTrace, error) bool) {}
	}
	agents, sessions := make([]string, len(q.Sessions)), make([]string, len(q.Sessions))
	for i, k := range q.Sessions {
		agents[i], sessions[i] = k.AgentID, k.SessionID
	}
	return r.judgedTraces(ctx, fmt.Sprintf("the traces of %d sessions", len(q.Sessions)), querySessionTraces, querySessionVerdicts,
		clickhouse.Named("agents", agents), clickhouse.Named("sessions", sessions),
		clickhouse.Named("from", eventHour(q.From)), clickhouse.Named("to", eventHour(q.To)))
}

// PartQuery asks for traces of one session of any length. It selects the traces of a stream whose
// sequences lie within (After, Cut], and those with one of the digests. Their event times lie within
// From..To.
type PartQuery struct {
	Session    SessionKey
	Stream     int64 // when the stream was created, in Unix nanoseconds; 0: any stream
	After, Cut uint64
	Digests    []string // hexadecimal; at most a few thousand
	From, To   time.Time
}

// PartTraces yields the traces of a part of a session. It follows the rules of SessionTraces.
func (r Reader) PartTraces(ctx context.Context, q PartQuery) iter.Seq2[*StoredTrace, error] {
	return r.judgedTraces(ctx, fmt.Sprintf("the traces of a part of session %q", q.Session.SessionID), queryPartTraces, queryPartVerdicts,
		clickhouse.Named("agent", q.Session.AgentID), clickhouse.Named("session", q.Session.SessionID),
		clickhouse.Named("created", q.Stream), clickhouse.Named("after", q.After), clickhouse.Named("cut", q.Cut), clickhouse.Named("digests", q.Digests),
		clickhouse.Named("from", eventHour(q.From)), clickhouse.Named("to", eventHour(q.To)))
}

// judgedTraces yields the result of one query, each trace with its verdict. A second query with
// the same arguments reads the verdicts at the same time. A record's bytes contain its agent and
// its id, so the digest alone identifies the trace of a verdict.
func (r Reader) judgedTraces(ctx context.Context, what, traces, verdicts string, args ...any) iter.Seq2[*StoredTrace, error] {
	return func(yield func(*StoredTrace, error) bool) {
		var found []*StoredTrace
		current := map[schema.Digest]*schema.Verdict{}
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error {
			for t, err := range database.Each[StoredTrace](ctx, r.db, traces, args...) {
				if err != nil {
					return err
				}
				found = append(found, t)
			}
			return nil
		})
		group.Go(func() error {
			for v, err := range database.Each[verdictRow](ctx, r.db, verdicts, args...) {
				if err != nil {
					return err
				}
				if other, verdict := current[v.TraceDigest], v.verdict(); other == nil || precedes(verdict, other) {
					current[v.TraceDigest] = verdict
				}
			}
			return nil
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

// precedes reports whether a verdict is the current one of two on the same trace: a judgement, then one
// that considers the revocation of its card, then the newest.
func precedes(a, b *schema.Verdict) bool {
	if a.Status != b.Status {
		return a.Status == schema.StatusJudged
	}
	if c := a.Metadata.CardRevokedAt.Compare(b.Metadata.CardRevokedAt); c != 0 {
		return c > 0
	}
	return a.Timestamp.After(b.Timestamp)
}

// TracesOfUnknownCards yields up to limit traces that name one of the cards and were never
// judged, earliest first. It does not yield them again once their verdicts are stored
// (InsertVerdicts).
func (r Reader) TracesOfUnknownCards(ctx context.Context, cardIDs []string, limit int) iter.Seq2[*StoredTrace, error] {
	if len(cardIDs) == 0 {
		return func(func(*StoredTrace, error) bool) {}
	}
	return each[StoredTrace](ctx, r.db, fmt.Sprintf("the traces of %d unknown cards", len(cardIDs)), queryUnknownCardTraces,
		clickhouse.Named("cards", cardIDs), clickhouse.Named("limit", limit))
}

// TracesOfRevokedCards yields up to limit traces, earliest first, whose card was revoked by the
// trace's own time or by its earliest receipt, and whose verdicts do not consider the revocation. It
// does not yield them again once such verdicts are stored (InsertVerdicts). After a trace that it
// yielded, it yields the next ones; nil means from the first.
func (r Reader) TracesOfRevokedCards(ctx context.Context, revoked []schema.Revocation, after *StoredTrace, limit int) iter.Seq2[*StoredTrace, error] {
	if len(revoked) == 0 {
		return func(func(*StoredTrace, error) bool) {}
	}
	cards, times := make([]string, len(revoked)), make([]int64, len(revoked))
	for i, revocation := range revoked {
		cards[i], times[i] = revocation.CardID, revocation.RevokedAt.UnixNano()
	}
	var created int64
	var sequence uint64
	if after != nil {
		created, sequence = after.StreamCreated.UnixNano(), after.Sequence
	}
	return each[StoredTrace](ctx, r.db, fmt.Sprintf("the traces of %d revoked cards", len(revoked)), queryRevokedCardTraces,
		clickhouse.Named("cards", cards), clickhouse.Named("revoked", times), clickhouse.Named("limit", limit),
		clickhouse.Named("created", created), clickhouse.Named("sequence", sequence))
}

// NumberQuestion is a question of session verification about the sequence numbers of one agent.
type NumberQuestion struct {
	AgentID   string
	SessionID string // the session that is verified
	session.NumberQuestion
}

// NumberedTraces answers all questions with one query. For each question it returns the traces of
// the agent, in whole hours, at most session.MaxNumbers.
func (r Reader) NumberedTraces(ctx context.Context, questions []NumberQuestion) ([][]session.NumberedTrace, error) {
	if len(questions) == 0 {
		return nil, nil
	}
	type row struct {
		Owned
		Question  uint32    `ch:"question"` // from 1
		SessionID string    `ch:"session_id"`
		Number    uint64    `ch:"number"`
		Earliest  time.Time `ch:"earliest"`
	}
	answers := make([][]session.NumberedTrace, len(questions))
	for row, err := range each[row](ctx, r.db, fmt.Sprintf("the numbered traces of %d agents", len(questions)), queryNumberedTraces, numberArgs(questions)...) {
		if err != nil {
			return nil, err
		}
		at := row.Question - 1
		answers[at] = append(answers[at], session.NumberedTrace{SessionID: row.SessionID, Number: row.Number, At: row.Earliest})
	}
	return answers, nil
}

// PrecedingNumbers answers all questions with one query. For each question it returns the trace
// of another session with the greatest matching number, or nil if there is none.
func (r Reader) PrecedingNumbers(ctx context.Context, questions []NumberQuestion) ([]*session.NumberedTrace, error) {
	if len(questions) == 0 {
		return nil, nil
	}
	type row struct {
		Owned
		Question  uint32    `ch:"question"` // from 1
		SessionID string    `ch:"last_session"`
		Number    uint64    `ch:"last_number"`
		At        time.Time `ch:"last_time"`
	}
	answers := make([]*session.NumberedTrace, len(questions))
	for row, err := range each[row](ctx, r.db, fmt.Sprintf("the numbers before %d sessions", len(questions)), queryPrecedingNumbers, numberArgs(questions)...) {
		if err != nil {
			return nil, err
		}
		answers[row.Question-1] = &session.NumberedTrace{SessionID: row.SessionID, Number: row.Number, At: row.At}
	}
	return answers, nil
}

func numberArgs(questions []NumberQuestion) []any {
	agents, sessions := make([]string, len(questions)), make([]string, len(questions))
	least, greatest := make([]uint64, len(questions)), make([]uint64, len(questions))
	from, to, until := make([]uint32, len(questions)), make([]uint32, len(questions)), make([]int64, len(questions))
	for i, q := range questions {
		agents[i], sessions[i], least[i], greatest[i] = q.AgentID, q.SessionID, q.Least, q.Greatest
		from[i], to[i], until[i] = eventHour(within(q.From)), eventHour(within(q.To)), within(q.To).UnixNano()
	}
	return []any{
		clickhouse.Named("agents", agents), clickhouse.Named("sessions", sessions), clickhouse.Named("least", least), clickhouse.Named("greatest", greatest),
		clickhouse.Named("hours_from", from), clickhouse.Named("hours_to", to), clickhouse.Named("until", until), clickhouse.Named("limit", session.MaxNumbers),
	}
}

// within clamps a time to the range in which traces can be.
func within(t time.Time) time.Time {
	switch {
	case t.Before(schema.EarliestTime):
		return schema.EarliestTime
	case t.After(schema.LatestTime):
		return schema.LatestTime
	}
	return t
}

// PriorTraces returns, for each stored id among traceIDs, the agents that have it, each with the
// earliest event time. The query has no range of time: a prior trace may have any age, and one that
// is later than the trace that names it is a finding, not a missing trace. The index trace_bloom
// limits what is read.
func (r Reader) PriorTraces(ctx context.Context, traceIDs []string) ([]session.PriorTrace, error) {
	if len(traceIDs) == 0 {
		return nil, nil
	}
	type row struct {
		Owned
		TraceID  string    `ch:"trace_id"`
		AgentID  string    `ch:"agent_id"`
		Earliest time.Time `ch:"earliest"`
	}
	var found []session.PriorTrace
	for row, err := range each[row](ctx, r.db, fmt.Sprintf("%d prior traces", len(traceIDs)), queryPriorTraces, clickhouse.Named("traces", traceIDs)) {
		if err != nil {
			return nil, err
		}
		found = append(found, session.PriorTrace{TraceID: row.TraceID, AgentID: row.AgentID, At: row.Earliest})
	}
	return found, nil
}
