package reconcile

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// receiptCheck compares messages with their receipts. Both are in the stream's order, so only as
// many wait for the other side as the verifier had in a batch.
type receiptCheck struct {
	*traceCheck
	next     func() ([]stream.Message, error, bool) // of stream RECEIPTS
	began    time.Time                              // when the oldest receipt that the stream still holds was written
	waiting  map[uint64]expected                    // messages without a receipt yet, by sequence
	early    map[uint64]schema.Receipt              // receipts whose messages come later
	through  uint64                                 // messages up to this sequence were passed to expect
	again    []schema.Receipt                       // receipts of messages that already had one, or that the stream does not hold, also because it is an earlier stream
	receipts []schema.Receipt
}

// expected is a message and the receipt it should have.
type expected struct {
	message
	eventTime time.Time
	end       bool
}

func (e *expected) agrees(r *schema.Receipt) bool {
	return e.AgentID == r.AgentID && e.SessionID == r.SessionID && e.Digest == r.Digest && e.eventTime.Equal(r.EventTime) && e.end == r.End
}

// expect records that a message should have a receipt.
func (r *receiptCheck) expect(about *message, trace *schema.Trace) {
	r.through = about.Sequence
	e := expected{message: *about, eventTime: trace.Timestamp, end: trace.Context.SessionEnd}
	if receipt, ok := r.early[about.Sequence]; ok {
		delete(r.early, about.Sequence)
		r.compare(&e, &receipt)
		return
	}
	r.waiting[about.Sequence] = e
}

// advance reads receipts until they have reached the messages.
func (r *receiptCheck) advance(ctx context.Context, through uint64) error {
	r.through = through
	for highest := uint64(0); highest < through; {
		messages, err, more := r.next()
		if err != nil || !more {
			return err
		}
		for i := range messages {
			highest = max(highest, r.take(&messages[i]))
		}
		if len(r.again) >= lookAtOnce {
			if err := r.lookForRepeated(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// take processes the receipts of one message, and returns the highest sequence among them.
func (r *receiptCheck) take(m *stream.Message) (highest uint64) {
	if r.began.IsZero() {
		r.began = m.Received
	}
	var err error
	if r.receipts, _, err = wire.DecodeReceipts(m.Data, r.receipts[:0]); err != nil {
		r.differ(Difference{Kind: ReceiptForeign, Sequence: m.Sequence}, "a message of stream RECEIPTS cannot be decoded: %v", err)
		return 0
	}
	for _, receipt := range r.receipts {
		r.count().Receipts++
		if r.earlier(&receipt, m) { // another message may have its sequence now
			r.again = append(r.again, receipt)
			continue
		}
		highest = max(highest, receipt.Sequence)
		e, waits := r.waiting[receipt.Sequence]
		_, met := r.early[receipt.Sequence]
		switch {
		case waits:
			delete(r.waiting, receipt.Sequence)
			r.compare(&e, &receipt)
		case receipt.Sequence < r.first: // its message was removed
		case receipt.Sequence > r.through && !met:
			r.early[receipt.Sequence] = receipt
		default:
			r.again = append(r.again, receipt)
		}
	}
	return highest
}

// earlier reports whether a receipt in message m is of an earlier stream TRACES. An old one does not name its stream.
func (r *receiptCheck) earlier(receipt *schema.Receipt, m *stream.Message) bool {
	current := r.horizon.traces.Created
	if receipt.Stream == 0 {
		return m.Received.Before(current)
	}
	return receipt.Stream != current.UnixNano()
}

func (r *receiptCheck) compare(e *expected, receipt *schema.Receipt) {
	if !e.agrees(receipt) {
		r.differ(e.difference(ReceiptChanged), "its receipt is of %s in session %q of agent %q", receipt.Digest, receipt.SessionID, receipt.AgentID)
	}
}

// lookForRepeated compares with the rows the second receipts, of messages that the verifier judged again, and those
// of an earlier stream.
func (r *receiptCheck) lookForRepeated(ctx context.Context) error {
	digests := make([]schema.Digest, len(r.again))
	for i := range r.again {
		digests[i] = r.again[i].Digest
	}
	rows, err := r.storedRows(ctx, digests)
	if err != nil {
		return err
	}
	for i := range r.again {
		receipt := &r.again[i]
		row := rows[receipt.Digest]
		switch {
		case row == nil && r.expired(receipt.AgentID, receipt.EventTime):
			r.count().Expired++
		case row == nil:
			r.differ(aboutReceipt(ReceiptForeign, receipt), "a receipt of trace %s, which is not stored", receipt.Digest)
		case !(&expected{message: *of(row), eventTime: row.EventTime, end: row.SessionEnd}).agrees(receipt):
			r.differ(aboutReceipt(ReceiptChanged, receipt), "a further receipt of trace %q of session %q differs from its row", row.TraceID, row.SessionID)
		default:
			r.count().Repeated++
		}
	}
	r.again = r.again[:0]
	return nil
}

func aboutReceipt(kind Kind, r *schema.Receipt) Difference {
	return Difference{Kind: kind, AgentID: r.AgentID, SessionID: r.SessionID, Sequence: r.Sequence}
}

// finish reports what is left on either side.
func (r *receiptCheck) finish(ctx context.Context) error {
	if err := r.advance(ctx, ^uint64(0)); err != nil {
		return err
	}
	if err := r.lookForRepeated(ctx); err != nil {
		return err
	}
	removed := r.horizon.receipts.FirstSequence > 1
	for _, sequence := range slices.Sorted(maps.Keys(r.waiting)) {
		e := r.waiting[sequence]
		switch {
		case e.Sequence > r.horizon.floor: // counted with its row
		case removed && e.Received.Before(r.began):
			r.count().Expired++
		default:
			r.differ(e.difference(ReceiptMissing), "the verifier is done with the message, and it has no receipt")
		}
	}
	for _, sequence := range slices.Sorted(maps.Keys(r.early)) {
		receipt := r.early[sequence]
		r.differ(aboutReceipt(ReceiptForeign, &receipt), "the stream has no such message")
	}
	return nil
}
