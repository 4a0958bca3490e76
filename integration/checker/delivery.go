package checker

import (
	"cmp"

	"github.com/plumbline/plumbline/pipeline/reconcile"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// checkDelivery: everything that was acknowledged is in the stream.
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
	w.checkAcknowledged(acked)
}

// checkAcknowledged: each acknowledged record is either one row or a dead letter, never both
// and never neither.
func (w *walk) checkAcknowledged(acked []schema.Digest) {
	rows, letters := w.digests("traces"), w.digests("dead_letters")
	judged := map[schema.Digest]bool{}
	for _, digest := range acked {
		if judged[digest] {
			continue
		}
		judged[digest] = true
		switch {
		case rows[digest] == 0 && letters[digest] == 0:
			w.seen.Lost++
			w.Errorf("delivery: %s was acknowledged and is neither a row nor a dead letter", digest)
		case rows[digest] > 1, rows[digest] > 0 && letters[digest] > 0:
			w.seen.Doubled++
			w.Errorf("delivery: %s is %d rows and %d dead letters", digest, rows[digest], letters[digest])
		}
	}
}

// digests counts the visible rows of a table for each record.
func (w *walk) digests(table string) map[schema.Digest]int {
	counts := map[schema.Digest]int{}
	w.query("SELECT lower(hex(digest)), count() FROM "+table+" GROUP BY digest", func(row []any) {
		var digest schema.Digest
		if err := digest.UnmarshalText([]byte(row[0].(string))); err != nil {
			w.Fatal(err)
		}
		counts[digest] = int(row[1].(uint64)) // a count of rows
	})
	return counts
}

// checkKept: the messages of the stream, the rows, receipts, bundles and the ledger agree
// (package reconcile), and nothing is in flight or could not be checked.
func (w *walk) checkKept() {
	summary, err := reconcile.Run(w.Context(), w.Kept, func(d *reconcile.Difference) error {
		if d.Kind == reconcile.BundleUnrecorded { // its part is recorded with another bundle, or will be
			w.seen.Doubled++
		}
		w.Errorf("kept: %s", d)
		return nil
	})
	if err != nil {
		w.Fatal(err)
	}
	c := &summary.Counts
	if len(summary.Skipped) > 0 || c.UnderWay+c.Expired+c.Unstreamed > 0 {
		w.Errorf("kept: not all of it was compared: %+v", summary)
	}
	w.seen.Traces, w.seen.Repeated, w.seen.DeadLetters = int(c.Traces), int(c.Repeated), int(c.DeadLetters)
	w.seen.Bundles, w.seen.Sealed = int(c.Bundles), int(c.Sealed)
	sessions := map[store.SessionKey]bool{}
	for _, row := range w.traces {
		sessions[store.SessionKey{AgentID: row.AgentID, SessionID: row.SessionID}] = true
	}
	w.seen.Sessions = len(sessions)
}

func compareSequence(a, b *store.StoredTrace) int { return cmp.Compare(a.Sequence, b.Sequence) }
