package store

import (
	"time"

	"github.com/plumbline/plumbline/schema"
)

// Meta is what the broker and the pipeline know about a trace in addition to its bytes.
type Meta struct {
	Received      time.Time // when the broker took the message: unchanged by a redelivery
	StreamCreated time.Time // creation time of the stream that Sequence belongs to
	Sequence      uint64
	Partition     int
	SessionID     string    // schema.SessionID of the trace
	RetainUntil   time.Time // zero: forever
	Redelivered   bool      // the message was delivered before: its rows may already be stored
}

// TraceBatch collects traces and their verdicts column by column. It is reused between batches
// (Reset), and is not safe for concurrent use.
//
// Add copies slices but not strings. The strings of a decoded trace alias the message, so its
// bytes must not change until Reset.
type TraceBatch struct {
	tenant   string
	columns  *traceColumns
	traces   *block
	verdicts VerdictBatch
	bytes    int
}

// NewTraceBatch returns an empty batch for this store's tenant.
func (s *Store) NewTraceBatch() *TraceBatch {
	columns := newTraceColumns()
	return &TraceBatch{
		tenant: s.cfg.Tenant, columns: columns,
		traces:   newBlock("traces", queryPresentTraces, columns, columns.fields()),
		verdicts: *s.NewVerdictBatch(),
	}
}

// Add appends a trace with its verdict. The caller may reuse t and v afterwards.
func (b *TraceBatch) Add(t *schema.Trace, m Meta, v *schema.Verdict) {
	if m.Redelivered {
		b.traces.suspects = append(b.traces.suspects, b.Len())
	}
	b.columns.add(b.tenant, t, &m)
	b.verdicts.Add(t, m, v)
	b.bytes += len(t.Raw) + rowOverhead
}

// rowOverhead is the approximate size of a row's other columns on the wire.
const rowOverhead = 512

// Len returns the number of traces.
func (b *TraceBatch) Len() int { return b.columns.len() }

// ID returns the identity of a row of the batch.
func (b *TraceBatch) ID(row int) RowID { return b.verdicts.ID(row) }

// Bytes returns the approximate size of the batch in memory and on the wire.
func (b *TraceBatch) Bytes() int { return b.bytes }

// Reset empties the batch for reuse. It keeps the batch's memory and releases the messages.
func (b *TraceBatch) Reset() {
	b.traces.reset()
	b.verdicts.Reset()
	b.bytes = 0
}

// VerdictBatch collects verdicts on traces that are already stored. It follows the rules of
// TraceBatch.
type VerdictBatch struct {
	tenant  string
	columns *verdictColumns
	block   *block
}

// NewVerdictBatch returns an empty batch for this store's tenant.
func (s *Store) NewVerdictBatch() *VerdictBatch {
	columns := newVerdictColumns()
	return &VerdictBatch{
		tenant: s.cfg.Tenant, columns: columns,
		block: newBlock("verdicts", queryPresentVerdicts, columns, columns.fields()),
	}
}

// Add appends a verdict on t. If t was read from the store, m is what the store returned.
func (b *VerdictBatch) Add(t *schema.Trace, m Meta, v *schema.Verdict) {
	if m.Redelivered {
		b.block.suspects = append(b.block.suspects, b.Len())
	}
	b.columns.add(b.tenant, t, &m, v)
}

// Len returns the number of verdicts.
func (b *VerdictBatch) Len() int { return b.columns.len() }

// RowID identifies the rows of a trace and of its verdict.
type RowID struct {
	Sequence uint64
	Digest   schema.Digest // of the trace
	Card     schema.Digest // the card of the verdict; zero if it was unknown
}

// ID returns the identity of a row of the batch.
func (b *VerdictBatch) ID(row int) RowID {
	key := b.columns.key(row)
	return RowID{Sequence: key.sequence, Digest: key.digest, Card: key.card}
}

// Reset empties the batch for reuse.
func (b *VerdictBatch) Reset() { b.block.reset() }
