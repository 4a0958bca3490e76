package reconcile

import (
	"context"
	"iter"

	"github.com/plumbline/plumbline/pipeline/stream"
)

// reader reads a stream from its first message to the message that was last at the beginning.
type reader struct {
	source *stream.Reader
	read   uint64 // sequence of the message read last
}

func openReader(ctx context.Context, client *stream.Client, name string, until stream.State) (*reader, error) {
	source, err := client.ReadThrough(ctx, stream.ConsumerConfig{Stream: name}, until.LastSequence, until)
	return &reader{source: source}, err
}

// next returns some messages, none at the end. They are valid until the next call.
func (r *reader) next(ctx context.Context) ([]stream.Message, error) {
	messages, err := r.source.Next(ctx, 0)
	if n := len(messages); n > 0 {
		r.read = messages[n-1].Sequence
	}
	return messages, err
}

// all returns an iterator over the messages.
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

func (r *reader) close() { r.source.Close() }
