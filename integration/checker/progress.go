package checker

import (
	"testing"

	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/schema"
)

// checkReceipts: every stored trace is receipted, with its true digest, session
// and end, and nothing else is.
func (w *walk) checkReceipts() {
	receipted := map[uint64]schema.Receipt{}
	var receipts []schema.Receipt
	for _, m := range w.readAll(stream.Receipts) {
		var err error
		if receipts, _, err = stream.DecodeReceipts(m.Data, receipts[:0]); err != nil {
			w.Errorf("receipts: message %d: %v", m.Sequence, err)
		}
		for _, r := range receipts {
			if other, again := receipted[r.Sequence]; again {
				w.seen.Repeated++
				if !sameReceipt(&other, &r) {
					w.Errorf("receipts: trace %d is receipted as %+v and as %+v", r.Sequence, other, r)
				}
			}
			receipted[r.Sequence] = r
		}
	}
	for _, row := range w.traces {
		want := schema.Receipt{
			AgentID: row.AgentID, SessionID: row.SessionID, Sequence: row.Sequence,
			Digest: row.Digest, EventTime: row.EventTime, End: row.SessionEnd,
		}
		if got := receipted[row.Sequence]; !sameReceipt(&got, &want) {
			w.Errorf("receipts: trace %s has %+v, want %+v", row.TraceID, got, want)
		}
		delete(receipted, row.Sequence)
	}
	w.checkFurther(receipted)
}

// checkFurther: a receipt of a message that became no row of its own is that of a
// copy, published again after the duplicate window.
func (w *walk) checkFurther(receipted map[uint64]schema.Receipt) {
	stored := map[schema.Digest]bool{}
	for _, row := range w.traces {
		stored[row.Digest] = true
	}
	for sequence, r := range receipted {
		if !stored[r.Digest] {
			w.Errorf("receipts: message %d is receipted and not stored", sequence)
		}
	}
}

func sameReceipt(a, b *schema.Receipt) bool {
	return a.AgentID == b.AgentID && a.SessionID == b.SessionID && a.Sequence == b.Sequence &&
		a.Digest == b.Digest && a.EventTime.Equal(b.EventTime) && a.End == b.End
}

// checkAcks: every consumer has acknowledged everything.
func (w *walk) checkAcks() {
	for _, c := range consumers() {
		progress, err := w.Client.ConsumerProgress(w.Context(), c.stream, c.name)
		if err != nil {
			w.Fatal(err)
		}
		if progress.Pending > 0 || progress.Unacked > 0 {
			w.Errorf("acks: consumer %s on %s has %d messages to come and %d not acknowledged", c.name, c.stream, progress.Pending, progress.Unacked)
		}
	}
	state, err := w.Client.StreamState(w.Context(), stream.Traces)
	if err != nil {
		w.Fatal(err)
	}
	progress, err := w.Client.ConsumerProgress(w.Context(), stream.Traces, stream.VerifierConsumer)
	if err != nil {
		w.Fatal(err)
	}
	if progress.AckFloor != state.LastSequence {
		w.Errorf("acks: the verifier's ack floor is %d, the stream ends at %d", progress.AckFloor, state.LastSequence)
	}
}

type consumer struct{ stream, name string }

// consumers are those that acknowledge what they have done.
func consumers() []consumer {
	all := []consumer{{stream.Traces, stream.VerifierConsumer}, {stream.DeadLetters, stream.DeadLetterConsumer}}
	for partition := range subject.Partitions {
		all = append(all, consumer{stream.Traces, stream.DriftConsumer(partition)})
	}
	return all
}

// AwaitRest waits until every consumer has acknowledged everything. A broker that
// does not answer meanwhile is asked again.
func AwaitRest(t testing.TB, client *stream.Client) {
	t.Helper()
	for _, c := range consumers() {
		pipelinetest.Await(t, "consumer "+c.name+" to come to rest", func() bool {
			progress, err := client.ConsumerProgress(t.Context(), c.stream, c.name)
			return err == nil && progress.Pending == 0 && progress.Unacked == 0
		})
	}
}
