package reconcile

import (
	"context"
	"iter"
	"time"

	"github.com/plumbline/plumbline/pipeline/stream"
)

// reader reads a stream from its first message to the one that was the last.
type reader struct {
	client *stream.Client
	name   string
	source *stream.Consumer // nil: there is nothing to read
	read   uint64           // sequence of the message read last
	last   uint64
	inbox  []stream.Message
}

// What is fetched at once.
const (
	fetchMessages = 2000
	fetchBytes    = 16 << 20
	fetchWait     = 500 * time.Millisecond
)

func openReader(ctx context.Context, client *stream.Client, name string, until stream.State) (*reader, error) {
	r := &reader{client: client, name: name, last: until.LastSequence}
	if until.Messages == 0 {
		r.read = r.last
		return r, nil
	}
	var err error
	r.source, err = client.OpenConsumer(ctx, stream.ConsumerConfig{Stream: name, PrefetchMessages: fetchMessages, PrefetchBytes: fetchBytes})
	return r, err
}

// next returns some messages, none at the end. They are good until the next call.
func (r *reader) next(ctx context.Context) ([]stream.Message, error) {
	for r.read < r.last {
		var err error
		want := int(min(fetchMessages, r.last-r.read)) //nolint:gosec // at most fetchMessages
		if r.inbox, err = r.source.Fetch(ctx, r.inbox[:0], want, fetchBytes, fetchWait); err != nil {
			return nil, err
		}
		if n := len(r.inbox); n > 0 {
			r.read = r.inbox[n-1].Sequence
			return r.inbox, nil
		}
		state, err := r.client.StreamState(ctx, r.name)
		if err != nil {
			return nil, err
		}
		if state.Messages == 0 || state.FirstSequence > r.last { // retention was faster
			break
		}
	}
	return nil, nil
}

// all returns the messages one by one.
func (r *reader) all(ctx context.Context) iter.Seq2[*stream.Message, error] {
	return func(yield func(*stream.Message, error) bool) {
		for {
			messages, err := r.next(ctx)
			if err != nil {
				yield(nil, err)
				return
			}
			if len(messages) == 0 {
				return
			}
			for _, m := range messages {
				if !yield(&m, nil) {
					return
				}
			}
		}
	}
}

func (r *reader) close() {
	if r.source != nil {
		r.source.Close()
	}
}
