package stream_test

import (
	"context"
	"errors"
	"testing"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// A call that ends while it reads loses none of the messages that it has received: with a
// context that has ended, each of them is read or left with equal chances.
func TestReaderKeepsWhatCameWithAnError(t *testing.T) {
	const stored, wanted = 200, 100
	client := connect(t, brokertest.New(t))
	publish(t, client, stored)
	state, err := client.StreamState(t.Context(), stream.Traces)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := client.ReadThrough(t.Context(), stream.ConsumerConfig{Stream: stream.Traces}, stored, state)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	ended, end := context.WithCancel(t.Context())
	end()
	failed := 0
	for last, turn := uint64(0), 0; last < wanted; turn++ {
		ctx, most := ended, 0
		if turn%2 == 0 {
			ctx, most = t.Context(), 1
		}
		messages, err := reader.Next(ctx, most)
		if errors.Is(err, context.Canceled) {
			failed++
		} else if err != nil {
			t.Fatal(err)
		}
		for _, m := range messages {
			if m.Sequence != last+1 {
				t.Fatalf("message %d after %d", m.Sequence, last)
			}
			last = m.Sequence
		}
	}
	if failed == 0 {
		t.Error("no call failed: the test shows nothing")
	}
}
