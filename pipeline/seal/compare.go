package seal

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// Difference lists how the rows of a session differ from its receipts. A part is sealed only if
// it is empty.
type Difference struct {
	Changed []string // trace ids of rows whose bytes differ from those receipted, or whose columns disagree with their bytes
	Missing []string // receipted digests (hexadecimal) that no row has
	Foreign []string // trace ids of rows without a receipt
}

// Empty reports whether rows and receipts agree.
func (d *Difference) Empty() bool {
	return len(d.Changed) == 0 && len(d.Missing) == 0 && len(d.Foreign) == 0
}

// Compare compares the stored rows of one part with its receipts, by the digests in the rows'
// columns. It does not check that the bytes have those digests; Read and Changed do. Rows of another
// stream than the part's (streamed reports which are of that one), and those with a sequence outside
// (after, cut], belong to other parts, unless their digest is receipted: check --deep finds those that are in
// no part. part holds the rows that belong to this one; their sequence becomes the receipt's. The rows may
// have any order.
func Compare(rows []*store.StoredTrace, receipts []schema.Receipt, streamed func(*store.StoredTrace) bool, after, cut uint64) (part []*store.StoredTrace, d Difference) {
	slices.SortFunc(rows, func(a, b *store.StoredTrace) int { // the same rows give the same result
		return cmp.Or(a.EventTime.Compare(b.EventTime), cmp.Compare(a.Sequence, b.Sequence), cmp.Compare(a.TraceID, b.TraceID), bytes.Compare(a.Digest[:], b.Digest[:]))
	})
	expected := make(map[schema.Digest]bool, len(receipts)) // true once a row has it
	sequences := make(map[uint64]schema.Digest, len(receipts))
	for i := range receipts {
		expected[receipts[i].Digest] = false
		sequences[receipts[i].Sequence] = receipts[i].Digest
	}
	first := make(map[schema.Digest]uint64, len(receipts))
	for i := range slices.Backward(receipts) {
		first[receipts[i].Digest] = receipts[i].Sequence
	}
	var unmatched []*store.StoredTrace
	for _, row := range rows {
		if met, known := expected[row.Digest]; known && !met {
			expected[row.Digest], row.Sequence = true, first[row.Digest]
			part = append(part, row)
		} else if known || streamed(row) && row.Sequence > after && row.Sequence <= cut {
			unmatched = append(unmatched, row)
		}
	}
	changed := map[schema.Digest]bool{}
	for _, row := range unmatched {
		was, receipted := sequences[row.Sequence]
		if receipted && !expected[was] && !changed[was] {
			changed[was] = true
			d.Changed = append(d.Changed, row.TraceID)
			continue
		}
		d.Foreign = append(d.Foreign, row.TraceID)
	}
	for digest, met := range expected {
		if !met && !changed[digest] {
			d.Missing = append(d.Missing, digest.String())
		}
	}
	slices.Sort(d.Missing)
	return part, d
}

// Changed returns the trace ids of rows whose bytes disagree with their columns.
func Changed(rows []*store.StoredTrace) (ids []string) {
	var r reader
	for _, row := range rows {
		if !r.admits(row) {
			ids = append(ids, row.TraceID)
		}
	}
	return ids
}

// reader decodes the records of rows. It uses only the bytes of a row, not its columns.
type reader struct {
	decoder schema.Decoder
	trace   schema.Trace // the record decoded last
}

// admits reports whether a row's bytes are a record that agrees with its columns: its digest, the
// values that determine its session and its place in it, and the names that are reported.
func (r *reader) admits(row *store.StoredTrace) bool {
	t := &r.trace
	if err := r.decoder.Admit(t, row.AgentID, row.Raw); err != nil {
		return false
	}
	return row.Digest == t.Digest && len(row.Raw) == len(t.Raw) && ColumnsAgree(t, row)
}

// ColumnsAgree reports whether the columns of a row agree with its record t on the values that
// determine the session of the row, its place in it, and the names that are reported.
func ColumnsAgree(t *schema.Trace, row *store.StoredTrace) bool {
	number, numbered := row.SequenceNumber, t.Context.HasSequenceNumber
	return row.TraceID == t.TraceID && row.AgentID == t.AgentID && row.CardID == t.CardID && row.SessionID == schema.SessionID(t) &&
		row.SessionEnd == t.Context.SessionEnd && row.EventTime.Equal(t.Timestamp) &&
		(number != nil) == numbered && (!numbered || *number == t.Context.SequenceNumber)
}

// Order sorts the traces of a part for the audit log: by sequence_number where every trace has
// one, otherwise by event time, then by stream sequence. It reports whether it sorted by
// sequence_number.
func Order(traces []*store.StoredTrace) (numbered bool) {
	numbered = !slices.ContainsFunc(traces, func(t *store.StoredTrace) bool { return t.SequenceNumber == nil })
	slices.SortStableFunc(traces, func(a, b *store.StoredTrace) int {
		if numbered && *a.SequenceNumber != *b.SequenceNumber {
			return cmp.Compare(*a.SequenceNumber, *b.SequenceNumber)
		}
		if c := a.EventTime.Compare(b.EventTime); c != 0 && !numbered {
			return c
		}
		return cmp.Compare(a.Sequence, b.Sequence)
	})
	return numbered
}
