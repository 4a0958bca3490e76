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

// Compare holds the stored rows of one part against its receipts. It trusts the
// bytes of a row alone: their SHA-256 is computed anew, what the columns say is
// compared with them, and the sequence becomes the receipt's. Rows with a sequence
// outside (after, cut] belong to other parts, unless their digest is receipted.
// part holds the rows that belong to this one.
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
	var columns columnCheck
	var unmatched []*store.StoredTrace
	for _, row := range rows {
		digest := schema.DigestOf(row.Raw)
		if met, known := expected[digest]; known && !met && row.Digest == digest && columns.agree(row) {
			expected[digest], row.Sequence = true, first[digest]
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

// columnCheck compares the columns beside a record with the record.
type columnCheck struct {
	decoder schema.Decoder
	trace   schema.Trace
}

// agree tells whether they say the same of what decides the session of a row,
// its place in it and the names that are told of it.
func (c *columnCheck) agree(row *store.StoredTrace) bool {
	t := &c.trace
	if err := c.decoder.Admit(t, row.AgentID, row.Raw); err != nil {
		return false
	}
	number, numbered := row.SequenceNumber, t.Context.HasSequenceNumber
	return row.TraceID == t.TraceID && row.CardID == t.CardID && row.SessionID == schema.SessionID(t) &&
		row.SessionEnd == t.Context.SessionEnd && row.EventTime.Equal(t.Timestamp) &&
		(number != nil) == numbered && (!numbered || *number == t.Context.SequenceNumber)
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
