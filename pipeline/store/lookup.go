package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/pipeline/database"
	"github.com/plumbline/plumbline/schema"
)

// lookUp returns the rows of a query that selects the members of K: the keys that are stored.
func lookUp[K comparable](ctx context.Context, db *database.DB, query string, args ...any) (map[K]bool, error) {
	found := map[K]bool{}
	for key, err := range database.Each[K](ctx, db, query, args...) {
		if err != nil {
			return nil, err
		}
		found[*key] = true
	}
	return found, nil
}

// unstored returns the rows of a block that must be sent; nil means all of them. First deliveries
// need no lookup. The row of a redelivered message, and any row after a failed attempt, is sent
// only if it is not stored. After an attempt whose writes failed, rows that a lookup would find
// do not count as stored.
func (w Writer) unstored(ctx context.Context, b *block) ([]int, error) {
	if b.unwritten || (!b.doubt && len(b.suspects) == 0) {
		return nil, nil
	}
	began := time.Now()
	rows := b.suspects
	if b.doubt {
		if err := w.noneRunning(ctx, b); err != nil {
			return nil, err
		}
		rows = every(b.rows.len())
	}
	missing, err := w.absent(ctx, b, rows)
	if err = errors.Join(err, w.written(ctx, began)); err != nil || b.doubt {
		return missing, err
	}
	return slices.DeleteFunc(every(b.rows.len()), func(row int) bool {
		_, suspect := slices.BinarySearch(b.suspects, row)
		_, absent := slices.BinarySearch(missing, row)
		return suspect && !absent
	}), nil
}

// noneRunning returns nil once no earlier attempt at a block is still running. The rows of a
// running attempt would not be visible yet.
func (w Writer) noneRunning(ctx context.Context, b *block) error {
	if b.attempts == 0 {
		return nil
	}
	ctx, cancel := w.db.ReadContext(ctx)
	defer cancel()
	var running uint64
	if err := w.db.QueryRow(ctx, queryRunning, clickhouse.Named("prefix", b.id+"-")).Scan(&running); err != nil {
		return err
	}
	if running > 0 {
		return errInFlight
	}
	return nil
}

// embedded is the name that the embedded library reports for itself (engine/config.xml.tmpl).
const embedded = "plumbline"

// written returns nil if what was looked up since a moment is on the disk. In the embedded
// library (see database.Insert) a lookup can find rows whose writes failed, until the library is
// restarted.
func (w Writer) written(ctx context.Context, since time.Time) error {
	server, err := w.db.ServerVersion()
	if err != nil || server.DisplayName != embedded {
		return err
	}
	ctx, cancel := w.db.ReadContext(ctx)
	defer cancel()
	var failed uint64
	var uptime uint32
	if err := w.db.QueryRow(ctx, queryFailedWrites).Scan(&failed, &uptime); err != nil {
		return err
	}
	if failed > 0 || time.Duration(uptime)*time.Second < time.Since(since) { // or it was restarted meanwhile
		return database.ErrUnwritten
	}
	return nil
}

// lookupRows is the maximum number of rows in one lookup.
const lookupRows = 10_000

// absent returns the rows that are not stored, in the order given.
func (w Writer) absent(ctx context.Context, b *block, rows []int) ([]int, error) {
	missing := make([]int, 0, len(rows))
	for part := range slices.Chunk(rows, lookupRows) {
		hours, sequences := make([]uint32, len(part)), make([]uint64, len(part))
		for i, row := range part {
			hours[i], sequences[i] = b.rows.hour(row), b.rows.key(row).Sequence
		}
		stored, err := lookUp[rowKey](ctx, w.db, b.stored, distinct("hours", hours), clickhouse.Named("sequences", sequences))
		if err != nil {
			return nil, err
		}
		for _, row := range part {
			if !stored[b.rows.key(row)] {
				missing = append(missing, row)
			}
		}
	}
	return missing, nil
}

// distinct binds values without repetitions.
func distinct[T cmp.Ordered](name string, values []T) any {
	return clickhouse.Named(name, slices.Compact(slices.Sorted(slices.Values(values))))
}

// TraceResults is what the tables have for some traces, whether or not parts are merged.
type TraceResults struct {
	rows     map[schema.Digest]time.Time              // when the earliest message of each trace was received
	verdicts map[schema.Digest]map[schema.Digest]bool // VerdictID of the verdicts on each trace
}

// TraceKey is what a look-up of a trace needs: its identity, and where the tables have it.
type TraceKey struct {
	AgentID   string
	EventTime time.Time
	Digest    schema.Digest
}

// KeyOf returns the key of a trace. It shares the trace's strings.
func KeyOf(t *schema.Trace) TraceKey { return TraceKey{t.AgentID, t.Timestamp, t.Digest} }

// keyArgs binds keys: without the hours and agents a look-up would read a whole table.
func keyArgs(keys []TraceKey) []any {
	hours, agents, digests := make([]uint32, len(keys)), make([]string, len(keys)), make([]schema.Digest, len(keys))
	for i := range keys {
		hours[i], agents[i], digests[i] = eventHour(keys[i].EventTime), keys[i].AgentID, keys[i].Digest
	}
	return []any{distinct("hours", hours), distinct("agents", agents), clickhouse.Named("digests", hexadecimal(digests))}
}

// LookUpTraces looks up traces and the verdicts on them.
func (r Reader) LookUpTraces(ctx context.Context, traces []TraceKey) (*TraceResults, error) {
	k := NewTraceResults()
	for part := range slices.Chunk(traces, lookupRows) {
		if err := r.lookUpTraces(ctx, part, k); err != nil {
			return nil, fmt.Errorf("look up %d traces: %w", len(traces), err)
		}
	}
	return k, nil
}

func (r Reader) lookUpTraces(ctx context.Context, traces []TraceKey, k *TraceResults) error {
	args := keyArgs(traces)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		type row struct {
			Digest   schema.Digest `ch:"digest"`
			Earliest time.Time     `ch:"earliest"`
		}
		for stored, err := range database.Each[row](ctx, r.db, queryLookupTraces, args...) {
			if err != nil {
				return err
			}
			k.rows[stored.Digest] = stored.Earliest
		}
		return nil
	})
	group.Go(func() error {
		for key, err := range database.Each[VerdictKey](ctx, r.db, queryLookupVerdicts, args...) {
			if err != nil {
				return err
			}
			k.noteVerdict(key.TraceDigest, key.ID())
		}
		return nil
	})
	return group.Wait()
}

// LookUpVerdicts returns the verdicts on traces by their VerdictID, as they were stored first.
func (r Reader) LookUpVerdicts(ctx context.Context, traces []TraceKey) (map[schema.Digest]*schema.Verdict, error) {
	found := map[schema.Digest]*schema.Verdict{}
	for part := range slices.Chunk(traces, lookupRows) {
		for row, err := range each[verdictRow](ctx, r.db, fmt.Sprintf("the verdicts on %d traces", len(traces)), queryVerdictsOn, keyArgs(part)...) {
			if err != nil {
				return nil, err
			}
			v := row.verdict()
			found[VerdictID(&v.Metadata)] = v
		}
	}
	return found, nil
}

// NewTraceResults returns results of no trace.
func NewTraceResults() *TraceResults {
	return &TraceResults{rows: map[schema.Digest]time.Time{}, verdicts: map[schema.Digest]map[schema.Digest]bool{}}
}

// Earliest returns when the earliest of the messages with these bytes was received: one of them at
// the given time, and others if the trace is stored.
func (k *TraceResults) Earliest(digest schema.Digest, received time.Time) time.Time {
	if k.Stored(digest, received) {
		return k.rows[digest]
	}
	return received
}

// Stored reports whether a stored row replaces the row of a message received at that time: the
// stored row has the same bytes and was not received later.
func (k *TraceResults) Stored(digest schema.Digest, received time.Time) bool {
	earliest, found := k.rows[digest]
	return found && !earliest.After(received)
}

// Judged reports whether this verdict is stored. For a verdict "card unknown" it reports whether
// any verdict on the trace is stored.
func (k *TraceResults) Judged(v *schema.Verdict) bool {
	if v.Status == schema.StatusCardUnknown {
		return k.HasVerdicts(v.Metadata.TraceDigest)
	}
	return k.HasVerdict(v.Metadata.TraceDigest, VerdictID(&v.Metadata))
}

// HasVerdicts reports whether any verdict on a trace is stored.
func (k *TraceResults) HasVerdicts(trace schema.Digest) bool { return len(k.verdicts[trace]) > 0 }

// HasVerdict reports whether a verdict on a trace is stored, by its VerdictID.
func (k *TraceResults) HasVerdict(trace, id schema.Digest) bool { return k.verdicts[trace][id] }

// Note adds a trace that will be stored with its verdict.
func (k *TraceResults) Note(received time.Time, v *schema.Verdict) {
	digest := v.Metadata.TraceDigest
	if !k.Stored(digest, received) {
		k.rows[digest] = received
	}
	k.noteVerdict(digest, VerdictID(&v.Metadata))
}

func (k *TraceResults) noteVerdict(trace, id schema.Digest) {
	if k.verdicts[trace] == nil {
		k.verdicts[trace] = map[schema.Digest]bool{}
	}
	k.verdicts[trace][id] = true
}

// LetterPlace identifies a dead letter by the message that caused it.
type LetterPlace struct {
	Sequence uint64        `ch:"origin_sequence"`
	Digest   schema.Digest `ch:"digest"` // of the letter's bytes
}

// LookUpLetters returns which of the messages have a dead letter that was received since the given
// time. Pass at most a few thousand sequences.
func (r Reader) LookUpLetters(ctx context.Context, since time.Time, sequences []uint64) (map[LetterPlace]bool, error) {
	found, err := lookUp[LetterPlace](ctx, r.db, queryLookupLetters,
		clickhouse.Named("since", eventHour(since)), clickhouse.Named("sequences", sequences))
	if err != nil {
		return nil, fmt.Errorf("look up the dead letters of %d messages: %w", len(sequences), err)
	}
	return found, nil
}

// JudgedDigests returns which of the traces have a verdict. Pass at most a few thousand.
func (r Reader) JudgedDigests(ctx context.Context, traces []schema.Digest) (map[schema.Digest]bool, error) {
	return r.storedDigests(ctx, "verdicts of traces", "verdicts", "trace_digest", traces)
}

// MeasuredDigests returns which of the traces have a drift point. Pass at most a few thousand.
func (r Reader) MeasuredDigests(ctx context.Context, traces []schema.Digest) (map[schema.Digest]bool, error) {
	return r.storedDigests(ctx, "drift points of traces", "drift_points", "trace_digest", traces)
}

// LookUpDriftAlerts returns which events of these alerts are stored.
func (r Reader) LookUpDriftAlerts(ctx context.Context, alerts []DriftAlert) (map[DriftAlertKey]bool, error) {
	ids := make([]schema.Digest, len(alerts))
	for i := range alerts {
		ids[i] = alerts[i].AlertID
	}
	found, err := lookUp[DriftAlertKey](ctx, r.db, queryLookupDriftAlerts, clickhouse.Named("alerts", hexadecimal(ids)))
	if err != nil {
		return nil, fmt.Errorf("look up %d events of drift alerts: %w", len(alerts), err)
	}
	return found, nil
}

// LookUpDriftBaselines returns which of the baselines are stored.
func (r Reader) LookUpDriftBaselines(ctx context.Context, ids []schema.Digest) (map[schema.Digest]bool, error) {
	return r.storedDigests(ctx, "drift baselines", "drift_baselines", "baseline_id", ids)
}

// storedDigests returns which of the digests are in a column of a table.
func (r Reader) storedDigests(ctx context.Context, what, table, column string, digests []schema.Digest) (map[schema.Digest]bool, error) {
	type key struct {
		Digest schema.Digest `ch:"digest"`
	}
	keys, err := lookUp[key](ctx, r.db, queryStoredDigests,
		clickhouse.Named("table", table), clickhouse.Named("column", column), clickhouse.Named("digests", hexadecimal(digests)))
	if err != nil {
		return nil, fmt.Errorf("look up %d %s: %w", len(digests), what, err)
	}
	found := make(map[schema.Digest]bool, len(keys))
	for k := range keys {
		found[k.Digest] = true
	}
	return found, nil
}

// PointKey identifies a drift point.
type PointKey struct {
	AgentID, CardID string
	TraceDigest     schema.Digest
	EngineVersion   string
}

func (p *DriftPoint) Key() PointKey {
	return PointKey{p.AgentID, p.CardID, p.TraceDigest, p.EngineVersion}
}

// LookUpDriftPoints returns the stored rows of those points that are stored. Pass at most a few
// thousand.
func (r Reader) LookUpDriftPoints(ctx context.Context, points []DriftPoint) (map[PointKey]*DriftPoint, error) {
	hours, digests := make([]uint32, len(points)), make([]schema.Digest, len(points))
	for i := range points {
		hours[i], digests[i] = eventHour(points[i].EventTime), points[i].TraceDigest
	}
	found := make(map[PointKey]*DriftPoint, len(points))
	for p, err := range database.Each[DriftPoint](ctx, r.db, queryLookupDriftPoints,
		distinct("hours", hours), clickhouse.Named("digests", hexadecimal(digests))) {
		if err != nil {
			return nil, fmt.Errorf("look up %d drift points: %w", len(points), err)
		}
		found[p.Key()] = p
	}
	return found, nil
}

// TraceTime names a trace, with its own time, by which its rows are found.
type TraceTime struct {
	Digest    schema.Digest
	EventTime time.Time
}

// FirstMeasured returns which of the traces have a drift point from the stream that was created at the given time, of any
// engine, and for each the sequence of the first message that has one. Pass at most a few thousand.
func (r Reader) FirstMeasured(ctx context.Context, streamCreated time.Time, traces []TraceTime) (map[schema.Digest]uint64, error) {
	hours, digests := make([]uint32, len(traces)), make([]schema.Digest, len(traces))
	for i, t := range traces {
		hours[i], digests[i] = eventHour(t.EventTime), t.Digest
	}
	type row struct {
		Digest schema.Digest `ch:"digest"`
		First  uint64        `ch:"first"`
	}
	first := make(map[schema.Digest]uint64, len(traces))
	for found, err := range database.Each[row](ctx, r.db, queryFirstMeasured, clickhouse.Named("created", nanoseconds(streamCreated)),
		distinct("hours", hours), clickhouse.Named("digests", hexadecimal(digests))) {
		if err != nil {
			return nil, fmt.Errorf("look up the first points of %d traces: %w", len(traces), err)
		}
		first[found.Digest] = found.First
	}
	return first, nil
}
