package verifier

import (
	"context"
	"slices"
	"time"

	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// What a replay reads at once.
const (
	replaySlice = 5000
	replayBytes = 32 << 20
	replayWait  = 250 * time.Millisecond
)

// through reads a stream up to a sequence that it has reached, with a consumer of
// its own that acknowledges nothing.
type through struct {
	client *stream.Client
	cfg    stream.ConsumerConfig
	source *stream.Consumer // nil: there is nothing to read
	last   uint64
	done   bool
	inbox  []stream.Message
}

func openThrough(ctx context.Context, client *stream.Client, cfg stream.ConsumerConfig, last uint64, state stream.State) (*through, error) {
	cfg.PrefetchMessages, cfg.PrefetchBytes = replaySlice, replayBytes
	r := &through{client: client, cfg: cfg, last: last}
	if r.done = cfg.From > last || r.beyond(state); r.done {
		return r, nil
	}
	var err error
	r.source, err = client.OpenConsumer(ctx, cfg)
	return r, err
}

// beyond tells whether a stream has nothing for this reader.
func (r *through) beyond(state stream.State) bool {
	return state.Messages == 0 || state.FirstSequence > r.last || state.LastReceived.Before(r.cfg.Since)
}

// next returns so many messages at most, none at the end. They are good until the
// next call.
func (r *through) next(ctx context.Context, most int) (inbox []stream.Message, err error) {
	for !r.done {
		clear(r.inbox)
		if r.inbox, err = r.source.Fetch(ctx, r.inbox[:0], most, replayBytes, replayWait); err != nil {
			return nil, err
		}
		if n := len(r.inbox); n > 0 {
			r.done = r.inbox[n-1].Sequence >= r.last
			return r.inbox[:r.within()], nil
		}
		state, err := r.client.StreamState(ctx, r.cfg.Stream)
		if err != nil {
			return nil, err
		}
		r.done = r.beyond(state) // retention was faster
	}
	return nil, nil
}

// within counts the messages in hand up to the last sequence.
func (r *through) within() int {
	n := slices.IndexFunc(r.inbox, func(m stream.Message) bool { return m.Sequence > r.last })
	if n < 0 {
		return len(r.inbox)
	}
	return n
}

func (r *through) close() {
	if r.source != nil {
		r.source.Close()
	}
}

// receiptBook tells which messages are receipted: a bit for each.
type receiptBook struct {
	from  uint64
	bits  []uint64
	since time.Time // receipts of earlier messages may be gone from the stream
}

// clockSlack is how far the broker's time of a receipt or a dead letter may be before its
// message's: in a cluster, streams have leaders on several machines.
const clockSlack = time.Minute

// readReceipts reads the receipts of the messages from first on.
func (w *replaying) readReceipts(ctx context.Context, first *stream.Message) (*receiptBook, error) {
	book := &receiptBook{from: first.Sequence, bits: make([]uint64, (w.summary.Through-first.Sequence)/64+1)}
	if w.receipts.Messages == 0 && w.receipts.LastSequence > 0 {
		book.since = w.receipts.LastReceived
	}
	cfg := stream.ConsumerConfig{Stream: stream.Receipts, Since: first.Received.Add(-clockSlack)}
	source, err := openThrough(ctx, w.Client, cfg, w.receipts.LastSequence, w.receipts)
	if err != nil {
		return nil, err
	}
	defer source.close()
	for {
		inbox, err := source.next(ctx, replaySlice)
		if err != nil || len(inbox) == 0 {
			return book, err
		}
		if inbox[0].Sequence == w.receipts.FirstSequence && inbox[0].Sequence > 1 {
			book.since = inbox[0].Received
		}
		for i := range inbox {
			if err := book.take(&inbox[i]); err != nil { // the exporter passes over it, too
				w.Log.Error("a message of the receipts cannot be read", "sequence", inbox[i].Sequence, "error", err)
			}
		}
	}
}

// take notes the receipts of a message.
func (r *receiptBook) take(m *stream.Message) error {
	receipts, _, err := stream.DecodeReceipts(m.Data, nil)
	if err != nil {
		return err
	}
	for i := range receipts {
		r.note(receipts[i].Sequence)
	}
	return nil
}

func (r *receiptBook) note(sequence uint64) {
	if at := (sequence - r.from) / 64; sequence >= r.from && at < uint64(len(r.bits)) {
		r.bits[at] |= 1 << ((sequence - r.from) % 64)
	}
}

// has tells whether a message is receipted, or may be: the stream has forgotten.
func (r *receiptBook) has(m store.Meta) bool {
	at := m.Sequence - r.from
	return r.bits[at/64]&(1<<(at%64)) != 0 || m.Received.Before(r.since)
}
