package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/schema"
)

// The queries that look up stored traces and verdicts.
var (
	queryKeptLetters  = mustQuery("kept_letters")
	queryKeptTraces   = mustQuery("kept_traces")
	queryKeptVerdicts = mustQuery("kept_verdicts")
)

// KeptQuery asks what is stored for some traces. Pass at most a few thousand.
type KeptQuery struct {
	Hours   []uint32        // EventHour of each trace, in any order
	Digests []schema.Digest // of each trace
}

// Add adds one trace to the query.
func (q *KeptQuery) Add(t *schema.Trace) {
	q.Hours, q.Digests = append(q.Hours, EventHour(t.Timestamp)), append(q.Digests, t.Digest)
}

// Kept is what the tables hold for the traces of a query, whether or not parts are merged.
type Kept struct {
	rows     map[schema.Digest]time.Time              // when the earliest message of each trace was received
	verdicts map[schema.Digest]map[schema.Digest]bool // VerdictID of the verdicts on each trace
}

// Kept looks up traces and the verdicts on them.
func (s *Store) Kept(ctx context.Context, q KeptQuery) (*Kept, error) {
	k := &Kept{rows: map[schema.Digest]time.Time{}, verdicts: map[schema.Digest]map[schema.Digest]bool{}}
	if len(q.Digests) == 0 {
		return k, nil
	}
	args := []any{
		clickhouse.Named("hours", slices.Compact(slices.Sorted(slices.Values(q.Hours)))),
		clickhouse.Named("digests", hexadecimal(q.Digests)),
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return k.readRows(ctx, s, args) })
	group.Go(func() error { return k.readVerdicts(ctx, s, args) })
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("look up %d traces: %w", len(q.Digests), err)
	}
	return k, nil
}

func (k *Kept) readRows(ctx context.Context, s *Store, args []any) error {
	type row struct {
		Owned
		Digest   schema.Digest `ch:"digest"`
		Earliest time.Time     `ch:"earliest"`
	}
	for r, err := range eachRow[row](ctx, s, queryKeptTraces, args...) {
		if err != nil {
			return err
		}
		k.rows[r.Digest] = r.Earliest
	}
	return nil
}

func (k *Kept) readVerdicts(ctx context.Context, s *Store, args []any) error {
	type row struct {
		Owned
		VerdictKey
	}
	for r, err := range eachRow[row](ctx, s, queryKeptVerdicts, args...) {
		if err != nil {
			return err
		}
		k.noteVerdict(r.TraceDigest, r.ID())
	}
	return nil
}

// Stored reports whether a stored row replaces the row of a message received at that time: the
// stored row has the same bytes and was not received later.
func (k *Kept) Stored(digest schema.Digest, received time.Time) bool {
	earliest, found := k.rows[digest]
	return found && !earliest.After(received)
}

// Judged reports whether this verdict is stored. For a verdict "card unknown" it reports whether
// any verdict on the trace is stored.
func (k *Kept) Judged(v *schema.Verdict) bool {
	verdicts := k.verdicts[v.Metadata.TraceDigest]
	if v.Status == schema.StatusCardUnknown {
		return len(verdicts) > 0
	}
	return verdicts[VerdictID(&v.Metadata)]
}

// Note adds a trace that will be stored with its verdict.
func (k *Kept) Note(received time.Time, v *schema.Verdict) {
	digest := v.Metadata.TraceDigest
	if !k.Stored(digest, received) {
		k.rows[digest] = received
	}
	k.noteVerdict(digest, VerdictID(&v.Metadata))
}

func (k *Kept) noteVerdict(trace, id schema.Digest) {
	if k.verdicts[trace] == nil {
		k.verdicts[trace] = map[schema.Digest]bool{}
	}
	k.verdicts[trace][id] = true
}

// LetterPlace identifies a dead letter by the message that caused it.
type LetterPlace struct {
	Sequence uint64
	Digest   schema.Digest // of the letter's bytes
}

// KeptLetters returns which of the messages have a dead letter that was received since the given
// time. Pass at most a few thousand sequences.
func (s *Store) KeptLetters(ctx context.Context, since time.Time, sequences []uint64) (map[LetterPlace]bool, error) {
	type row struct {
		Owned
		Sequence uint64        `ch:"origin_sequence"`
		Digest   schema.Digest `ch:"digest"`
	}
	found := map[LetterPlace]bool{}
	for r, err := range eachRow[row](ctx, s, queryKeptLetters,
		clickhouse.Named("since", EventHour(since)), clickhouse.Named("sequences", sequences)) {
		if err != nil {
			return nil, fmt.Errorf("look up the dead letters of %d messages: %w", len(sequences), err)
		}
		found[LetterPlace{r.Sequence, r.Digest}] = true
	}
	return found, nil
}
