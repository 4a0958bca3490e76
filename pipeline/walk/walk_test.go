package walk_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/walk"
)

// asked records the questions to a broker in their order.
type asked struct{ questions []string }

func (a *asked) ConsumerProgress(_ context.Context, name, consumer string) (stream.Progress, error) {
	a.questions = append(a.questions, name+"/"+consumer)
	return stream.Progress{AckFloor: uint64(len(a.questions))}, nil
}

func (a *asked) StreamState(_ context.Context, name string) (stream.State, error) {
	a.questions = append(a.questions, name)
	return stream.State{LastSequence: uint64(len(a.questions))}, nil
}

// The ack floor is read before the states, so that what the verifier wrote about the messages up
// to the floor lies within the states.
func TestAckFloorIsReadBeforeTheStates(t *testing.T) {
	broker := new(asked)
	floor, states, err := walk.Verified(t.Context(), broker, stream.Receipts, stream.Traces)
	want := []string{stream.Traces + "/" + stream.VerifierConsumer, stream.Receipts, stream.Traces}
	if err != nil || !slices.Equal(broker.questions, want) {
		t.Errorf("requests %q, want %q; error %v", broker.questions, want, err)
	}
	if floor != 1 || len(states) != 2 || states[0].LastSequence != 2 || states[1].LastSequence != 3 {
		t.Errorf("floor %d, states %+v", floor, states)
	}
	floors, err := walk.Measured(t.Context(), broker)
	if err != nil || floors[0] != 4 || broker.questions[3] != stream.Traces+"/"+stream.DriftConsumer(0) {
		t.Errorf("floors %v, error %v", floors, err)
	}
}

// A walk yields the messages from its start to the sequence that was last when it began, in order
// and without gaps, and acks nothing.
func TestWalkEndsAtTheSequenceThatWasLast(t *testing.T) {
	client := brokertest.New(t).Connect()
	pipelinetest.EnsureTopology(t, client)
	committer := client.NewCommitter(stream.CommitConfig{})
	defer committer.Close()
	publish := func(from, to int) {
		t.Helper()
		var records []stream.Record
		for i := from; i <= to; i++ {
			records = append(records, pipelinetest.Trace(fmt.Sprintf("tr-%d", i), "a", "ac", "s", "2026-02-01T00:00:00Z", "search"))
		}
		if _, err := committer.Publish(t.Context(), records); err != nil {
			t.Fatal(err)
		}
	}
	publish(1, 25)
	state, err := client.StreamState(t.Context(), stream.Traces)
	if err != nil || state.LastSequence != 25 {
		t.Fatalf("%+v, error %v", state, err)
	}
	publish(26, 30)

	next := uint64(3)
	for messages, err := range walk.Slices(t.Context(), client, stream.ConsumerConfig{Stream: stream.Traces, From: next}, state, 10) {
		if err != nil || len(messages) == 0 || len(messages) > 10 {
			t.Fatalf("%d messages, error %v", len(messages), err)
		}
		for i := range messages {
			if messages[i].Sequence != next {
				t.Fatalf("sequence %d, want %d", messages[i].Sequence, next)
			}
			next++
		}
	}
	if next != 26 {
		t.Errorf("the walk ended before sequence %d, want 26", next)
	}

	var all []*stream.Message
	for m, err := range walk.Messages(t.Context(), client, stream.Traces, state) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	if len(all) != 25 || all[0].Sequence != 1 || all[24].Sequence != 25 {
		t.Errorf("%d messages", len(all))
	}
	for m, err := range walk.Messages(t.Context(), client, stream.Traces, state) {
		if err != nil || m.Sequence != 1 {
			t.Errorf("%v, error %v", m, err)
		}
		break // the caller may stop early
	}
	for messages, err := range walk.Slices(t.Context(), client, stream.ConsumerConfig{Stream: stream.Traces, From: 26}, state, 0) {
		t.Errorf("a walk from beyond the last sequence yields %d messages, error %v", len(messages), err)
	}
	if progress, err := client.ConsumerProgress(t.Context(), stream.Traces, stream.VerifierConsumer); err != nil || progress.AckFloor != 0 {
		t.Errorf("ack floor %d, error %v", progress.AckFloor, err)
	}
}

// A walk yields what the broker sent before it closed the connection permanently, and then the
// error.
func TestWalkYieldsAnErrorAfterTheMessages(t *testing.T) {
	broker := brokertest.New(t)
	client := broker.Connect()
	pipelinetest.EnsureTopology(t, client)
	committer := client.NewCommitter(stream.CommitConfig{})
	defer committer.Close()
	records := make([]stream.Record, 21)
	for i := range records {
		records[i] = pipelinetest.Trace(fmt.Sprintf("tr-%d", i), "a", "ac", "s", "2026-02-01T00:00:00Z", "search")
	}
	if _, err := committer.Publish(t.Context(), records); err != nil {
		t.Fatal(err)
	}
	state, err := client.StreamState(t.Context(), stream.Traces)
	if err != nil {
		t.Fatal(err)
	}
	state.LastSequence++ // the walk does not end before the error
	wire := brokertest.NewWire(t, broker.URL())
	expelled := brokertest.Connect(t, stream.Config{URL: wire.URL(), Timeout: 300 * time.Millisecond})
	var failed error
	last := uint64(0)
	for messages, err := range walk.Slices(t.Context(), expelled, stream.ConsumerConfig{Stream: stream.Traces}, state, 2) {
		if failed != nil {
			t.Fatalf("after the error: %d messages, error %v", len(messages), err)
		}
		failed = err
		for i := range messages {
			if last++; messages[i].Sequence != last {
				t.Fatalf("sequence %d, want %d", messages[i].Sequence, last)
			}
		}
		if last <= 2 && err == nil {
			wire.Expel()
			if err := expelled.Closed(t.Context()); err == nil {
				t.Fatal("the connection is not closed")
			}
		}
	}
	if last == 0 || !errors.Is(failed, stream.ErrUnavailable) {
		t.Errorf("%d messages, error %v", last, failed)
	}
}
