package checker

import (
	"cmp"

	"github.com/plumbline/plumbline/pipeline/reconcile"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// checkDelivery: everything that was acknowledged is in the stream.
func (k *checker) checkDelivery(acked []schema.Digest) {
	inStream := make(map[schema.Digest]bool, len(k.messages))
	for i := range k.messages {
		inStream[schema.DigestOf(k.messages[i].Data)] = true
	}
	for _, digest := range acked {
		if !inStream[digest] {
			k.Errorf("delivery: %s was acknowledged and is not in the stream", digest)
		}
	}
	k.checkAcknowledged(acked)
}

// checkAcknowledged: each acknowledged record is either one row or a dead letter, never both
// and never neither.
func (k *checker) checkAcknowledged(acked []schema.Digest) {
	rows, letters := k.digests("traces"), k.digests("dead_letters")
	judged := map[schema.Digest]bool{}
	for _, digest := range acked {
		if judged[digest] {
			continue
		}
		judged[digest] = true
		switch {
		case rows[digest] == 0 && letters[digest] == 0:
			k.seen.Lost++
			k.Errorf("delivery: %s was acknowledged and is neither a row nor a dead letter", digest)
		case rows[digest] > 1, rows[digest] > 0 && letters[digest] > 0:
			k.seen.Doubled++
			k.Errorf("delivery: %s is %d rows and %d dead letters", digest, rows[digest], letters[digest])
		}
	}
}

// digests counts the visible rows of a table for each record.
func (k *checker) digests(table string) map[schema.Digest]int {
	counts := map[schema.Digest]int{}
	k.query("SELECT lower(hex(digest)), count() FROM "+table+" GROUP BY digest", func(row []any) {
		var digest schema.Digest
		if err := digest.UnmarshalText([]byte(row[0].(string))); err != nil {
			k.Fatal(err)
		}
		counts[digest] = int(row[1].(uint64)) // a count of rows
	})
	return counts
}

// checkKept: the messages of the stream, the rows, receipts, bundles and the ledger agree
// (package reconcile), and nothing is in flight or could not be checked.
func (k *checker) checkKept() {
	summary, err := reconcile.Run(k.Context(), k.Kept, func(d *reconcile.Difference) error {
		if d.Kind == reconcile.BundleUnrecorded { // its part is recorded with another bundle, or will be
			k.seen.Doubled++
		}
		k.Errorf("kept: %s", d)
		return nil
	})
	if err != nil {
		k.Fatal(err)
	}
	c := &summary.Counts
	if len(summary.Skipped) > 0 || c.UnderWay+c.Expired+c.Unstreamed > 0 {
		k.Errorf("kept: not all of it was compared: %+v", summary)
	}
	k.seen.Traces, k.seen.Repeated, k.seen.DeadLetters = int(c.Traces), int(c.Repeated), int(c.DeadLetters)
	k.seen.Bundles, k.seen.Sealed = int(c.Bundles), int(c.Sealed)
	sessions := map[store.SessionKey]bool{}
	for _, row := range k.traces {
		sessions[store.SessionKey{AgentID: row.AgentID, SessionID: row.SessionID}] = true
	}
	k.seen.Sessions = len(sessions)
}

func compareSequence(a, b *store.StoredTrace) int { return cmp.Compare(a.Sequence, b.Sequence) }
