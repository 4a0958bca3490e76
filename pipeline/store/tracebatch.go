package store

import (
	"time"

	"github.com/plumbline/plumbline/schema"
)

// Meta is what the broker and the pipeline know of a trace beside its bytes.
type Meta struct {
	Received      time.Time // when the broker took the message: the same on every redelivery
	StreamCreated time.Time // which stream Sequence counts in
	Sequence      uint64
	Partition     int
	SessionID     string    // schema.SessionID of the trace
	RetainUntil   time.Time // zero: for ever
	Redelivered   bool      // the message was delivered before: its rows may be stored
}

// TraceBatch gathers traces and their verdicts column by column. It is reused
// between batches (Reset), and not safe for concurrent use.
//
// Add copies slices and keeps strings: those of a decoded trace alias the
// message, whose bytes must stay as they are until Reset.
type TraceBatch struct {
	tenant   string
	columns  *traceColumns
	traces   *block
	verdicts VerdictBatch
	bytes    int
}

// NewTraceBatch returns an empty batch of this store's tenant.
func (s *Store) NewTraceBatch() *TraceBatch {
	columns := newTraceColumns()
	return &TraceBatch{
		tenant: s.cfg.Tenant, columns: columns,
		traces:   newBlock("traces", queryPresentTraces, columns, columns.fields()),
		verdicts: *s.NewVerdictBatch(),
	}
}

// Add appends a trace with its verdict. t and v may be reused afterwards.
func (b *TraceBatch) Add(t *schema.Trace, m Meta, v *schema.Verdict) {
	if m.Redelivered {
		b.traces.suspects = append(b.traces.suspects, b.Len())
	}
	b.columns.add(b.tenant, t, &m)
	b.verdicts.Add(t, m, v)
	b.bytes += len(t.Raw) + rowOverhead
}

// rowOverhead is what a row's other columns take on the wire, about.
const rowOverhead = 512

// Len returns the number of traces.
func (b *TraceBatch) Len() int { return b.columns.len() }

// ID returns what tells a row of the batch apart.
func (b *TraceBatch) ID(row int) RowID { return b.verdicts.ID(row) }

// Bytes returns about how much the batch takes in memory and on the wire.
func (b *TraceBatch) Bytes() int { return b.bytes }

// Reset empties the batch for the next one; it keeps its memory and lets go of
// the messages.
func (b *TraceBatch) Reset() {
	b.traces.reset()
	b.verdicts.Reset()
	b.bytes = 0
}

// VerdictBatch gathers verdicts on traces that are stored already. The rules of
// TraceBatch hold.
type VerdictBatch struct {
	tenant  string
	columns *verdictColumns
	block   *block
}

// NewVerdictBatch returns an empty batch of this store's tenant.
func (s *Store) NewVerdictBatch() *VerdictBatch {
	columns := newVerdictColumns()
	return &VerdictBatch{
		tenant: s.cfg.Tenant, columns: columns,
		block: newBlock("verdicts", queryPresentVerdicts, columns, columns.fields()),
	}
}

// Add appends a verdict on t. Of a stored trace, m is what the store returned.
func (b *VerdictBatch) Add(t *schema.Trace, m Meta, v *schema.Verdict) {
	if m.Redelivered {
		b.block.suspects = append(b.block.suspects, b.Len())
	}
	b.columns.add(b.tenant, t, &m, v)
}

// Len returns the number of verdicts.
func (b *VerdictBatch) Len() int { return b.columns.len() }

// RowID is what tells the rows of a trace and of its verdict apart from others.
type RowID struct {
	Sequence uint64
	Digest   schema.Digest // of the trace
	Card     schema.Digest // that the verdict rests on; zero where it was unknown
}

// ID returns what tells a row of the batch apart.
func (b *VerdictBatch) ID(row int) RowID {
	key := b.columns.key(row)
	return RowID{Sequence: key.sequence, Digest: key.digest, Card: key.card}
}

// Reset empties the batch for the next one.
func (b *VerdictBatch) Reset() { b.block.reset() }
