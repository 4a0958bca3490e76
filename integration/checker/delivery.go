package checker

import (
	"cmp"

	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// checkDelivery: what was acknowledged is in the stream, and every message of the
// stream is either a stored trace, byte for byte and with the broker's account of
// it, or a dead letter with a reason: never neither, never both. Nothing else is
// stored.
func (w *walk) checkDelivery(acked []schema.Digest) {
	inStream := make(map[schema.Digest]bool, len(w.messages))
	for i := range w.messages {
		inStream[schema.DigestOf(w.messages[i].Data)] = true
	}
	for _, digest := range acked {
		if !inStream[digest] {
			w.Errorf("delivery: %s was acknowledged and is not in the stream", digest)
		}
	}
	stored, letters := w.storedByDigest(), w.lettersBySequence()
	expected := make(map[schema.Digest]bool, len(w.messages))
	for i := range w.messages {
		m := &w.messages[i]
		trace, err := schema.Admit(m.Agent, m.Data)
		reason, dead := letters[m.Sequence]
		switch {
		case err != nil && (!dead || reason == ""):
			w.Errorf("delivery: message %d is no valid trace (%v), and no dead letter", m.Sequence, err)
		case err == nil && dead:
			w.Errorf("delivery: message %d is a valid trace, and a dead letter: %s", m.Sequence, reason)
		case err == nil:
			w.checkRow(m, trace, stored[trace.Digest], expected[trace.Digest])
			expected[trace.Digest] = true
		}
	}
	for digest, row := range stored {
		if !expected[digest] {
			w.Errorf("delivery: trace %s (%s) is stored and came by no message", row.TraceID, digest)
		}
	}
	w.seen.DeadLetters = len(letters)
}

// checkRow compares a message with its row. A later message of the same bytes
// leaves the row as the earliest made it.
func (w *walk) checkRow(m *stream.Message, trace *schema.Trace, row *store.StoredTrace, again bool) {
	switch {
	case row == nil:
		w.Errorf("delivery: trace %s (message %d) is neither stored nor a dead letter", trace.TraceID, m.Sequence)
	case again:
	case row.TraceID != trace.TraceID || row.AgentID != trace.AgentID || row.CardID != trace.CardID ||
		row.SessionID != schema.SessionID(trace) || !row.EventTime.Equal(trace.Timestamp) || row.SessionEnd != trace.Context.SessionEnd:
		w.Errorf("delivery: the row of trace %s does not say what its record says", trace.TraceID)
	case row.Sequence != m.Sequence || !row.Received.Equal(m.Received) || int(row.Partition) != m.Partition:
		w.Errorf("delivery: the row of trace %s says message %d of partition %d received at %s, the broker says %d, %d, %s", trace.TraceID,
			row.Sequence, row.Partition, row.Received, m.Sequence, m.Partition, m.Received)
	}
}

// storedByDigest indexes the rows by what their bytes really are.
func (w *walk) storedByDigest() map[schema.Digest]*store.StoredTrace {
	stored := make(map[schema.Digest]*store.StoredTrace, len(w.traces))
	for _, row := range w.traces {
		digest := schema.DigestOf(row.Raw)
		if digest != row.Digest {
			w.Errorf("delivery: trace %s is stored under the digest of other bytes", row.TraceID)
		}
		if stored[digest] != nil {
			w.Errorf("copies: trace %s is visible twice", row.TraceID)
		}
		stored[digest] = row
	}
	w.seen.Traces = len(stored)
	return stored
}

// lettersBySequence maps messages of the stream that are dead letters to their
// reasons. What ingest refused was never in the stream.
func (w *walk) lettersBySequence() map[uint64]string {
	letters := map[uint64]string{}
	w.query("SELECT origin_sequence, reason FROM dead_letters WHERE origin_sequence > 0", func(row []any) {
		letters[row[0].(uint64)] = row[1].(string)
	})
	return letters
}

func compareSequence(a, b *store.StoredTrace) int { return cmp.Compare(a.Sequence, b.Sequence) }
