package stream

import (
	"context"
	"slices"
	"time"
)

// Reader reads a stream up to a sequence that the stream has reached. It has its own consumer,
// which acknowledges nothing. Only one goroutine may use it.
type Reader struct {
	client *Client
	cfg    ConsumerConfig
	source *Consumer // nil: there is nothing to read
	last   uint64
	done   bool
	inbox  []Message
	failed error // error of the last fetch, if messages came before it: the next call returns it
}

// The limits of one fetch of a reader.
const (
	readMessages = 5000
	readBytes    = 32 << 20
	readWait     = 250 * time.Millisecond
)

// ReadThrough starts reading at From or Since of the configuration. It must have no filter,
// because a filter could hide the last sequence. state is the stream's state, current or earlier.
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

// beyond reports whether a stream has nothing for this reader.
func (r *Reader) beyond(state State) bool {
	return state.Messages == 0 || state.FirstSequence > r.last || state.LastReceived.Before(r.cfg.Since)
}

// Next returns at most `most` messages, with 0 meaning a few thousand, and none at the end. The
// messages are valid until the next call. If an error followed them, the next call returns it.
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
		r.done = r.beyond(state) // retention has removed the rest
	}
	return nil, nil
}

// within returns the number of fetched messages up to the last sequence.
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
