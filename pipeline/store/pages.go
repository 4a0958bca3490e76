package store

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/plumbline/plumbline/pipeline/database"
	"github.com/plumbline/plumbline/schema"
)

// Agents selects rows by their agent: those with one of the ids, and those whose id begins with one
// of the prefixes. The zero value selects none.
type Agents struct{ IDs, Prefixes []string }

// TraceQuery selects traces. An empty member selects any trace; Agents selects none if it is empty.
type TraceQuery struct {
	Agents    Agents
	AgentID   string // one of Agents: an index finds its rows
	SessionID string
	TraceID   string
	From, To  time.Time  // the event time lies within [From, To)
	Violation string     // a type that the current verdict has, or AnyViolation
	After     *PageTrace // only traces that come after this place
	Limit     int
}

// AnyViolation selects traces whose current verdict has violations.
const AnyViolation = "any"

// PageTrace is the place of a trace on a page of a list. The newest event time is first, and equal times are
// in order of the other members. All of them are properties of the trace's bytes, so a place never
// changes, and rows that are inserted later move no trace that a reader has seen.
type PageTrace struct {
	EventTime time.Time     `ch:"event_time"`
	AgentID   string        `ch:"agent_id"`
	TraceID   string        `ch:"trace_id"`
	Digest    schema.Digest `ch:"digest"`
}

// ListTraces returns the places of the first Limit traces of a query, in their order.
func (r Reader) ListTraces(ctx context.Context, q TraceQuery) ([]PageTrace, error) {
	statement := queryListedTraces
	if q.Violation != "" {
		statement = queryListedViolations
	}
	after := PageTrace{}
	if q.After != nil {
		after = *q.After
	} else {
		after.EventTime = q.To // no trace of the query is at this time
	}
	last := q.To
	if q.After != nil && after.EventTime.Before(last) {
		last = after.EventTime
	}
	return read[PageTrace](ctx, r.db, "a list of traces", statement, append(q.Agents.args(q.AgentID),
		clickhouse.Named("session", q.SessionID), clickhouse.Named("trace", q.TraceID), clickhouse.Named("violation", q.Violation),
		clickhouse.Named("from_hour", eventHour(within(q.From))), clickhouse.Named("to_hour", eventHour(within(last))),
		clickhouse.Named("from", within(q.From).UnixNano()), clickhouse.Named("to", within(q.To).UnixNano()),
		clickhouse.Named("after_time", within(after.EventTime).UnixNano()), clickhouse.Named("after_agent", after.AgentID),
		clickhouse.Named("after_trace", after.TraceID), clickhouse.Named("after_digest", after.Digest.String()),
		clickhouse.Named("limit", q.Limit))...)
}

// args binds the agents, and one of them whose rows an index finds.
func (a Agents) args(one string) []any {
	return []any{clickhouse.Named("agent", one),
		clickhouse.Named("agents", append([]string{}, a.IDs...)), clickhouse.Named("prefixes", append([]string{}, a.Prefixes...))}
}

// TraceBytes returns how many bytes the records at some places have, by digest. A record that
// retention has removed since is missing.
func (r Reader) TraceBytes(ctx context.Context, places []PageTrace) (map[schema.Digest]uint64, error) {
	type row struct {
		Digest schema.Digest `ch:"digest"`
		Bytes  uint64        `ch:"bytes"`
	}
	sizes := map[schema.Digest]uint64{}
	for row, err := range each[row](ctx, r.db, "the sizes of traces", queryListedSizes, ofPlaces(places)...) {
		if err != nil {
			return nil, err
		}
		sizes[row.Digest] = row.Bytes
	}
	return sizes, nil
}

// TracesAt returns the traces at some places, in the order of the places, each with its current
// verdict. A trace that retention has removed since is missing. All of them are in memory together:
// see TraceBytes.
func (r Reader) TracesAt(ctx context.Context, places []PageTrace) ([]*StoredTrace, error) {
	if len(places) == 0 {
		return nil, nil
	}
	found := make(map[schema.Digest]*StoredTrace, len(places))
	for t, err := range r.judgedTraces(ctx, "listed traces", queryListedRecords, queryListedVerdicts, ofPlaces(places)...) {
		if err != nil {
			return nil, err
		}
		found[t.Digest] = t
	}
	traces := make([]*StoredTrace, 0, len(places))
	for _, place := range places {
		if t := found[place.Digest]; t != nil {
			traces = append(traces, t)
		}
	}
	return traces, nil
}

func ofPlaces(places []PageTrace) []any {
	hours, digests := make([]uint32, len(places)), make([]schema.Digest, len(places))
	for i := range places {
		hours[i], digests[i] = eventHour(places[i].EventTime), places[i].Digest
	}
	return []any{distinct("hours", hours), clickhouse.Named("digests", hexadecimal(digests))}
}

// StoredSequences returns, for traces by their event times and digests, the sequence in stream TRACES
// of the newest message whose row is kept for another day at least. A trace without such a row has no
// entry. The caller decides whether the stream still has that message.
func (r Reader) StoredSequences(ctx context.Context, at []time.Time, digests []schema.Digest) (map[schema.Digest]uint64, error) {
	hours := make([]uint32, len(at))
	for i := range at {
		hours[i] = eventHour(at[i])
	}
	type row struct {
		Digest   schema.Digest `ch:"digest"`
		Sequence uint64        `ch:"sequence"`
	}
	found := map[schema.Digest]uint64{}
	for row, err := range database.Each[row](ctx, r.db, queryStoredSequences, distinct("hours", hours), clickhouse.Named("digests", hexadecimal(digests))) {
		if err != nil {
			return nil, fmt.Errorf("look up the sequences of %d traces: %w", len(digests), err)
		}
		found[row.Digest] = row.Sequence
	}
	return found, nil
}

// BundleQuery selects bundles. An empty member selects any bundle; Agents selects none if it is
// empty.
type BundleQuery struct {
	Agents    Agents
	AgentID   string // one of Agents
	SessionID string
	SHA256    schema.Digest // of one bundle
	From, To  time.Time     // the time of sealing lies within [From, To)
	After     *PageBundle   // only bundles that come after this place
	Limit     int
}

// PageBundle is the place of a bundle on a page of a list: the newest first, and equal times in order of the
// digests.
type PageBundle struct {
	ExportedAt time.Time
	SHA256     schema.Digest
}

// ListedBundle is a bundle with the verdict on its part, and the state of its session.
type ListedBundle struct {
	Bundle
	Verdict       *schema.SessionVerdict // nil if there is none
	SessionStatus string                 // SessionSealed, SessionHeld; empty if it is not recorded yet
}

// ListBundles returns the first Limit bundles of a query, in their order.
func (r Reader) ListBundles(ctx context.Context, q BundleQuery) ([]ListedBundle, error) {
	after := PageBundle{ExportedAt: q.To}
	if q.After != nil {
		after = *q.After
	}
	digest := ""
	if !q.SHA256.IsZero() {
		digest = q.SHA256.String()
	}
	bundles, err := read[Bundle](ctx, r.db, "a list of bundles", queryListedBundles, append(q.Agents.args(q.AgentID),
		clickhouse.Named("session", q.SessionID), clickhouse.Named("sha256", digest),
		clickhouse.Named("from", within(q.From).UnixNano()), clickhouse.Named("to", within(q.To).UnixNano()),
		clickhouse.Named("after_time", within(after.ExportedAt).UnixNano()), clickhouse.Named("after_sha256", after.SHA256.String()),
		clickhouse.Named("limit", q.Limit))...)
	if err != nil || len(bundles) == 0 {
		return nil, err
	}
	return r.withSessions(ctx, bundles)
}

// withSessions adds the verdicts on the parts and the states of the sessions.
func (r Reader) withSessions(ctx context.Context, bundles []Bundle) ([]ListedBundle, error) {
	type part struct {
		SessionKey
		part uint32
	}
	var agents, sessions []string
	for i := range bundles {
		agents, sessions = append(agents, bundles[i].AgentID), append(sessions, bundles[i].SessionID)
	}
	of := []any{clickhouse.Named("agents", agents), clickhouse.Named("sessions", sessions)}
	verdicts := map[part]*schema.SessionVerdict{}
	for row, err := range each[sessionVerdictRow](ctx, r.db, "the verdicts on listed sessions", queryListedPartVerdicts, of...) {
		if err != nil {
			return nil, err
		}
		verdicts[part{SessionKey{row.AgentID, row.SessionID}, row.Part}] = row.verdict()
	}
	type state struct {
		AgentID   string `ch:"agent_id"`
		SessionID string `ch:"session_id"`
		Status    string `ch:"status"`
	}
	states := map[SessionKey]string{}
	for row, err := range each[state](ctx, r.db, "the states of listed sessions", queryListedSessions, of...) {
		if err != nil {
			return nil, err
		}
		states[SessionKey{row.AgentID, row.SessionID}] = row.Status
	}
	listed := make([]ListedBundle, len(bundles))
	for i := range bundles {
		key := SessionKey{bundles[i].AgentID, bundles[i].SessionID}
		listed[i] = ListedBundle{Bundle: bundles[i], Verdict: verdicts[part{key, bundles[i].Part}], SessionStatus: states[key]}
	}
	return listed, nil
}
