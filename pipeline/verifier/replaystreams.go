package verifier

import (
	"context"
	"time"

	"github.com/plumbline/plumbline/pipeline/sink"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/walk"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// restoreLetters inserts the dead letters that their stream has and the table lacks, of the
// messages from first on. A refused message without a letter in either gets one when it is
// judged.
func (w *replaying) restoreLetters(ctx context.Context, first *stream.Message) error {
	since := first.Received.Add(-clockSlack)
	for inbox, err := range walk.Slices(ctx, w.Client, stream.ConsumerConfig{Stream: stream.DeadLetters, Since: since}, w.letters, 0) {
		if err != nil {
			return err
		}
		missing, err := w.missingLetters(ctx, inbox, since, first.Sequence)
		if err != nil {
			return err
		}
		if err := w.Store.InsertDeadLetters(ctx, missing); err != nil {
			return err
		}
		w.summary.LettersWritten += len(missing)
	}
	return nil
}

// missingLetters returns the letters, of messages to be judged, that are not rows.
func (w *replaying) missingLetters(ctx context.Context, inbox []stream.Message, since time.Time, from uint64) ([]store.DeadLetter, error) {
	var letters []store.DeadLetter
	var sequences []uint64
	for i := range inbox {
		if inbox[i].Subject == wire.MarkSubject {
			continue
		}
		letter, err := wire.ParseDeadLetter(inbox[i].Subject, inbox[i].Header, inbox[i].Data)
		if err != nil { // the sink skips it, too
			w.Log.Error("a message of stream DEADLETTER is not a dead letter", "sequence", inbox[i].Sequence, "error", err)
			continue
		}
		if letter.Sequence >= from && letter.Sequence <= w.summary.Through {
			letters, sequences = append(letters, sink.LetterRow(&inbox[i], &letter)), append(sequences, letter.Sequence)
		}
	}
	if len(letters) == 0 {
		return nil, nil
	}
	kept, err := w.Store.LookUpLetters(ctx, since, sequences)
	missing := letters[:0]
	for i := range letters {
		if !kept[store.LetterPlace{Sequence: letters[i].OriginSequence, Digest: schema.DigestOf(letters[i].Raw)}] {
			missing = append(missing, letters[i])
		}
	}
	return missing, err
}

// receiptBook records which messages have a receipt: one bit for each.
type receiptBook struct {
	from  uint64
	bits  []uint64
	since time.Time // receipts of earlier messages may be gone from the stream
}

// clockSlack is how far the broker's time of a receipt or a dead letter may be before that of its
// message. In a cluster, streams have leaders on different machines.
const clockSlack = time.Minute

// readReceipts reads the receipts of the messages from first on.
func (w *replaying) readReceipts(ctx context.Context, first *stream.Message) (*receiptBook, error) {
	book := &receiptBook{from: first.Sequence, bits: make([]uint64, (w.summary.Through-first.Sequence)/64+1)}
	if w.receipts.Messages == 0 && w.receipts.LastSequence > 0 {
		book.since = w.receipts.LastReceived
	}
	within := stream.ConsumerConfig{Stream: stream.Receipts, Since: first.Received.Add(-clockSlack)}
	for inbox, err := range walk.Slices(ctx, w.Client, within, w.receipts, 0) {
		if err != nil {
			return nil, err
		}
		if inbox[0].Sequence == w.receipts.FirstSequence && inbox[0].Sequence > 1 {
			book.since = inbox[0].Received
		}
		for i := range inbox {
			receipts, _, err := wire.DecodeReceipts(inbox[i].Data, nil)
			if err != nil { // the exporter skips it, too
				w.Log.Error("a message of stream RECEIPTS cannot be decoded", "sequence", inbox[i].Sequence, "error", err)
				continue
			}
			for r := range receipts {
				book.note(receipts[r].Sequence)
			}
		}
	}
	return book, nil
}

func (r *receiptBook) note(sequence uint64) {
	if at := (sequence - r.from) / 64; sequence >= r.from && at < uint64(len(r.bits)) {
		r.bits[at] |= 1 << ((sequence - r.from) % 64)
	}
}

// has reports whether a message has a receipt, or may have one that the stream no longer holds.
func (r *receiptBook) has(m store.Meta) bool {
	at := m.Sequence - r.from
	return r.bits[at/64]&(1<<(at%64)) != 0 || m.Received.Before(r.since)
}
