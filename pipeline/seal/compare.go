package seal

import (
	"cmp"
	"slices"

	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// Difference is how the rows of a session differ from its receipts. Only an
// empty one may be sealed over.
type Difference struct {
	Changed []string // trace ids whose bytes are not those that were receipted, or whose columns do not say what the bytes say
	Missing []string // receipted digests (hexadecimal) that no row has
	Foreign []string // trace ids of rows that nobody receipted
}

// Empty tells whether rows and receipts agree.
func (d *Difference) Empty() bool {
	return len(d.Changed) == 0 && len(d.Missing) == 0 && len(d.Foreign) == 0
}

// Compare holds the stored rows of one part against its receipts, by the digests that
// the rows bear; whether their bytes have those is for Read or Changed to find out.
// Rows with a sequence outside (after, cut] belong to other parts, unless their digest
// is receipted. part holds the rows that belong to this one; their sequence becomes
// the receipt's.
func Compare(rows []*store.StoredTrace, receipts []schema.Receipt, after, cut uint64) (part []*store.StoredTrace, d Difference) {
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
		} else if known || row.Sequence > after && row.Sequence <= cut {
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

// Changed returns the trace ids of rows whose bytes are not what the columns beside
// them say.
func Changed(rows []*store.StoredTrace) (ids []string) {
	var r reader
	for _, row := range rows {
		if !r.admits(row) {
			ids = append(ids, row.TraceID)
		}
	}
	return ids
}

// reader decodes the records of rows. It trusts the bytes of a row alone.
type reader struct {
	decoder schema.Decoder
	trace   schema.Trace // the record decoded last
}

// admits tells whether a row's bytes are a record, and that of which the columns tell:
// its digest, what decides its session and its place in it, and the names that are
// told of it.
func (r *reader) admits(row *store.StoredTrace) bool {
	t := &r.trace
	if err := r.decoder.Admit(t, row.AgentID, row.Raw); err != nil {
		return false
	}
	return row.Digest == t.Digest && len(row.Raw) == len(t.Raw) && ColumnsAgree(t, row)
}

// Order puts the traces of a part into the order of the audit log: by
// sequence_number where every trace has one, else by event time, then by stream
// sequence. It tells whether it was by sequence_number.
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
