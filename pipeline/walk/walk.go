// Package walk reads streams as far as the stages have processed them. check --deep
// (pipeline/reconcile) and both replays (pipeline/verifier, pipeline/drift) read every stream
// with it, and the exporter takes its watermark from it.
//
// It owns the order in which the broker is asked for progress, and the one loop over a stream.
// It does not own what is done with a message, nor the stages' consumers, which ack.
//
// Invariants: a watermark's ack floor is read before the states of the streams, so what the stage
// wrote about the messages up to the floor lies within these states. A walk acks nothing. It
// yields messages in stream order and ends at a sequence that was fixed before it began, or when
// retention has removed the rest.
package walk

import (
	"context"
	"iter"
	"time"

	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
)

// Broker answers questions about progress (stream.Client).
type Broker interface {
	ConsumerProgress(ctx context.Context, stream, consumer string) (stream.Progress, error)
	StreamState(ctx context.Context, stream string) (stream.State, error)
}

// Verified returns the verifier's watermark: the sequence of TRACES up to which it is done, and then the
// state of each of the streams, in their order. The verifier publishes receipts, dead letters and alerts
// before it records that their messages are done, so those of all messages up to the floor are in the streams up to these states.
func Verified(ctx context.Context, broker Broker, streams ...string) (floor uint64, states []stream.State, err error) {
	progress, err := broker.ConsumerProgress(ctx, stream.Traces, stream.VerifierConsumer)
	if err != nil {
		return 0, nil, err
	}
	states = make([]stream.State, len(streams))
	for i, name := range streams {
		if states[i], err = broker.StreamState(ctx, name); err != nil {
			return 0, nil, err
		}
	}
	return progress.AckFloor, states, nil
}

// Measured returns drift's watermark: the sequence of TRACES up to which it is done, for each partition.
// Drift stores points, alerts and states before it records that their messages are done.
func Measured(ctx context.Context, broker Broker) (floors [subject.Partitions]uint64, err error) {
	for partition := range floors {
		progress, err := broker.ConsumerProgress(ctx, stream.Traces, stream.DriftConsumer(partition))
		if err != nil {
			return floors, err
		}
		floors[partition] = progress.AckFloor
	}
	return floors, nil
}

// The limits of one fetch.
const (
	fetchMessages = 5000
	fetchBytes    = 32 << 20
	fetchWait     = 250 * time.Millisecond
)

// Slices yields the messages of a stream up to until.LastSequence, at most `most` in a slice, with
// 0 meaning a few thousand. The configuration names the stream and may set From or Since. It must
// have no filter, because a filter could hide the last sequence. A slice is valid until the next
// one. An error ends the walk, after the messages that came before it.
func Slices(ctx context.Context, client *stream.Client, cfg stream.ConsumerConfig, until stream.State, most int) iter.Seq2[[]stream.Message, error] {
	cfg.PrefetchMessages, cfg.PrefetchBytes = fetchMessages, fetchBytes
	if most <= 0 {
		most = fetchMessages
	}
	last := until.LastSequence
	hasNothing := func(state stream.State) bool {
		return state.Messages == 0 || state.FirstSequence > last || state.LastReceived.Before(cfg.Since)
	}
	return func(yield func([]stream.Message, error) bool) {
		if cfg.From > last || hasNothing(until) {
			return
		}
		source, err := client.OpenConsumer(ctx, cfg)
		if err != nil {
			yield(nil, err)
			return
		}
		defer source.Close()
		var inbox []stream.Message
		for done := false; !done; {
			clear(inbox)
			inbox, err = source.Fetch(ctx, inbox[:0], most, fetchBytes, fetchWait)
			n := len(inbox)
			if n > 0 {
				done = inbox[n-1].Sequence >= last
			} else if err == nil {
				var state stream.State
				state, err = client.StreamState(ctx, cfg.Stream)
				done = err == nil && hasNothing(state) // retention has removed the rest
			}
			for n > 0 && inbox[n-1].Sequence > last {
				n--
			}
			if n > 0 && !yield(inbox[:n], nil) {
				return
			}
			if err != nil && !done {
				yield(nil, err)
				return
			}
		}
	}
}

// Messages yields the messages of a whole stream up to until.LastSequence, one at a time.
func Messages(ctx context.Context, client *stream.Client, name string, until stream.State) iter.Seq2[*stream.Message, error] {
	return func(yield func(*stream.Message, error) bool) {
		for messages, err := range Slices(ctx, client, stream.ConsumerConfig{Stream: name}, until, 0) {
			if err != nil {
				yield(nil, err)
				return
			}
			for _, m := range messages { // a copy: it stays valid
				if !yield(&m, nil) {
					return
				}
			}
		}
	}
}
