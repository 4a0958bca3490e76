package stream

import (
	"context"
	"slices"
	"time"
)

// Reader reads a stream up to a sequence that it has reached, with a consumer of its
// own that acknowledges nothing. It is for one goroutine.
type Reader struct {
	client *Client
	cfg    ConsumerConfig
	source *Consumer // nil: there is nothing to read
	last   uint64
	done   bool
	inbox  []Message
	failed error // of the last fetch, where messages came before it: the next call returns it
}

// What a reader fetches at once.
const (
	readMessages = 5000
	readBytes    = 32 << 20
	readWait     = 250 * time.Millisecond
)

// ReadThrough starts reading with From or Since of the configuration; a filter would
// leave the end unseen. state is the stream's, now or earlier.
func (c *Client) ReadThrough(ctx context.Context, cfg ConsumerConfig, last uint64, state State) (*Reader, error) {
	cfg.PrefetchMessages, cfg.PrefetchBytes = readMessages, readBytes
	r := &Reader{client: c, cfg: cfg, last: last}
	if r.done = cfg.From > last || r.beyond(state); r.done {
		return r, nil
	}
	var err error
	r.source, err = c.OpenConsumer(ctx, cfg)
	return r, err
}

// beyond tells whether a stream has nothing for this reader.
func (r *Reader) beyond(state State) bool {
	return state.Messages == 0 || state.FirstSequence > r.last || state.LastReceived.Before(r.cfg.Since)
}

// Next returns so many messages at most, 0 standing for some thousand; none at the
// end. They are good until the next call, which returns the error that came with them.
func (r *Reader) Next(ctx context.Context, most int) ([]Message, error) {
	if most <= 0 {
		most = readMessages
	}
	for !r.done {
		clear(r.inbox)
		r.inbox = r.inbox[:0]
		if r.failed == nil {
			r.inbox, r.failed = r.source.Fetch(ctx, r.inbox, most, readBytes, readWait)
		}
		if n := len(r.inbox); n > 0 {
			r.done = r.inbox[n-1].Sequence >= r.last
			return r.inbox[:r.within()], nil
		}
		if err := r.failed; err != nil {
			r.failed = nil
			return nil, err
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
func (r *Reader) within() int {
	n := slices.IndexFunc(r.inbox, func(m Message) bool { return m.Sequence > r.last })
	if n < 0 {
		return len(r.inbox)
	}
	return n
}

// Close ends reading.
func (r *Reader) Close() {
	if r.source != nil {
		r.source.Close()
	}
}
