package stream_test

import (
	"errors"
	"testing"
	"time"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// A reader returns what the broker sent before the connection was closed for good, and then the
// error.
func TestReaderKeepsWhatCameWithAnError(t *testing.T) {
	const stored = 20
	broker := brokertest.New(t)
	publish(t, connect(t, broker), stored)
	client := dial(t, broker, stream.Config{Timeout: 300 * time.Millisecond})
	state, err := client.StreamState(t.Context(), stream.Traces)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := client.ReadThrough(t.Context(), stream.ConsumerConfig{Stream: stream.Traces}, stored+1, state)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	first, err := reader.Next(t.Context(), 1)
	if err != nil || len(first) != 1 {
		t.Fatal(first, err)
	}
	pipelinetest.Await(t, "the other messages", func() bool { return reader.Queued() == stored-1 })
	if err := client.Provoke(); err != nil {
		t.Fatal(err)
	}
	if err := client.Closed(t.Context()); err == nil {
		t.Fatal("the connection is not closed")
	}
	rest, err := reader.Next(t.Context(), 0)
	if err != nil || len(rest) != stored-1 || rest[0].Sequence != 2 {
		t.Errorf("%d messages, %v", len(rest), err)
	}
	if rest, err = reader.Next(t.Context(), 0); len(rest) > 0 || !errors.Is(err, stream.ErrUnavailable) {
		t.Errorf("then %d messages, %v", len(rest), err)
	}
}
