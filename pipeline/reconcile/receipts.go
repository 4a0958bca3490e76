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
	source   *reader
	began    time.Time                 // when the oldest receipt that the stream still holds was written
	waiting  map[uint64]expected       // messages without a receipt yet, by sequence
	early    map[uint64]schema.Receipt // receipts whose messages come later
	through  uint64                    // messages up to this sequence were passed to expect
	again    []schema.Receipt          // receipts of messages that already had one, or that the stream does not hold
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

func (t *traceCheck) openReceipts(ctx context.Context) (*receiptCheck, error) {
	source, err := openReader(ctx, t.Client, stream.Receipts, t.horizon.receipts)
	return &receiptCheck{traceCheck: t, source: source, waiting: map[uint64]expected{}, early: map[uint64]schema.Receipt{}}, err
}

// expect records that a message should have a receipt.
func (r *receiptCheck) expect(about *message, trace *schema.Trace) error {
	r.through = about.Sequence
	e := expected{message: *about, eventTime: trace.Timestamp, end: trace.Context.SessionEnd}
	if receipt, ok := r.early[about.Sequence]; ok {
		delete(r.early, about.Sequence)
		return r.compare(&e, &receipt)
	}
	r.waiting[about.Sequence] = e
	return nil
}

// advance reads receipts until they have reached the messages.
func (r *receiptCheck) advance(ctx context.Context, through uint64) error {
	r.through = through
	for highest := uint64(0); highest < through; {
		messages, err := r.source.next(ctx)
		if err != nil || len(messages) == 0 {
			return err
		}
		for i := range messages {
			if err := r.take(&messages[i], &highest); err != nil {
				return err
			}
		}
		if len(r.again) >= lookAtOnce {
			if err := r.lookForRepeated(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// take processes the receipts of one message.
func (r *receiptCheck) take(m *stream.Message, highest *uint64) (err error) {
	if r.began.IsZero() {
		r.began = m.Received
	}
	if r.receipts, _, err = wire.DecodeReceipts(m.Data, r.receipts[:0]); err != nil {
		return r.differ(Difference{Kind: ReceiptForeign, Sequence: m.Sequence}, "a message of stream RECEIPTS is none: %v", err)
	}
	for i := range r.receipts {
		receipt := r.receipts[i]
		*highest = max(*highest, receipt.Sequence)
		if err := r.receipt(&receipt); err != nil {
			return err
		}
	}
	return nil
}

func (r *receiptCheck) receipt(receipt *schema.Receipt) error {
	r.count().Receipts++
	e, waits := r.waiting[receipt.Sequence]
	_, met := r.early[receipt.Sequence]
	switch {
	case waits:
		delete(r.waiting, receipt.Sequence)
		return r.compare(&e, receipt)
	case receipt.Sequence < r.first: // its message was removed
	case receipt.Sequence > r.through && !met:
		r.early[receipt.Sequence] = *receipt
	default:
		r.again = append(r.again, *receipt)
	}
	return nil
}

func (r *receiptCheck) compare(e *expected, receipt *schema.Receipt) error {
	if e.agrees(receipt) {
		return nil
	}
	return r.differ(e.difference(ReceiptChanged), "it is receipted as %s of session %q of agent %q", receipt.Digest, receipt.SessionID, receipt.AgentID)
}

// lookForRepeated compares second receipts with the rows: the verifier judged the messages again.
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
		about := message{AgentID: receipt.AgentID, SessionID: receipt.SessionID, Sequence: receipt.Sequence}
		row := rows[receipt.Digest]
		switch {
		case row == nil && r.expired(receipt.AgentID, receipt.EventTime):
			r.count().Expired++
		case row == nil:
			err = r.differ(about.difference(ReceiptForeign), "a trace %s is receipted that is not stored", receipt.Digest)
		case !(&expected{message: *of(row), eventTime: row.EventTime, end: row.SessionEnd}).agrees(receipt):
			err = r.differ(about.difference(ReceiptChanged), "trace %q of session %q is receipted again, as another", row.TraceID, row.SessionID)
		default:
			r.count().Repeated++
		}
		if err != nil {
			return err
		}
	}
	r.again = r.again[:0]
	return nil
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
			if err := r.differ(e.difference(ReceiptMissing), "the verifier has acknowledged the message and left no receipt"); err != nil {
				return err
			}
		}
	}
	for _, sequence := range slices.Sorted(maps.Keys(r.early)) {
		receipt := r.early[sequence]
		about := message{AgentID: receipt.AgentID, SessionID: receipt.SessionID, Sequence: receipt.Sequence}
		if err := r.differ(about.difference(ReceiptForeign), "the stream has no such message"); err != nil {
			return err
		}
	}
	return nil
}
