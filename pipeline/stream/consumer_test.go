package stream_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
)

// publish stores n different records, and returns them.
func publish(t testing.TB, client *stream.Client, n int) []stream.Record {
	t.Helper()
	all := records("r", n)
	if _, err := newCommitter(t, client, stream.CommitConfig{}).Publish(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestFetchBoundsAndWaits(t *testing.T) {
	client := connect(t, brokertest.New(t))
	all := publish(t, client, 10)
	consumer := open(t, client, stream.ConsumerConfig{Stream: stream.Traces, Durable: stream.VerifierConsumer})
	reused := make([]stream.Message, 0, 10)
	first, err := consumer.Fetch(t.Context(), reused, 3, 0, time.Minute)
	if err != nil || len(first) != 3 || &first[0] != &reused[:1][0] {
		t.Fatalf("Fetch = %d messages, %v", len(first), err)
	}
	second, err := consumer.Fetch(t.Context(), nil, 10, len(all[3].Data)+1, time.Minute)
	if err != nil || len(second) != 2 {
		t.Fatalf("limited by bytes: %d messages, %v", len(second), err)
	}
	third, err := consumer.Fetch(t.Context(), nil, 10, 0, 100*time.Millisecond)
	if err != nil || len(third) != 5 || third[4].Sequence != 10 {
		t.Fatalf("limited by time: %d messages, %v", len(third), err)
	}
	none, err := consumer.Fetch(t.Context(), nil, 10, 0, time.Millisecond)
	if err != nil || len(none) != 0 {
		t.Fatalf("empty stream: %d messages, %v", len(none), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := consumer.Fetch(ctx, nil, 10, 0, time.Minute); !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled: %v", err)
	}
}

func TestMessageHasAgentPartitionAndSequence(t *testing.T) {
	client := connect(t, brokertest.New(t))
	before := time.Now()
	all := publish(t, client, 50)
	consumer := open(t, client, stream.ConsumerConfig{Stream: stream.Traces, Durable: stream.VerifierConsumer})
	partitions := map[string]int{}
	for i, m := range fetch(t, consumer, 50) {
		if m.Agent != all[i].Agent || m.Sequence != uint64(i+1) || m.Redelivered {
			t.Errorf("message %d = %+v", i, m)
		}
		if m.Received.Before(before) || m.Received.After(time.Now()) || m.Received.Location() != time.UTC {
			t.Errorf("message %d was received at %v", i, m.Received)
		}
		if p, known := partitions[m.Agent]; known && p != m.Partition {
			t.Errorf("agent %s is in partitions %d and %d", m.Agent, p, m.Partition)
		}
		partitions[m.Agent] = m.Partition
	}
	state, err := client.StreamState(t.Context(), stream.Traces)
	if err != nil || !state.Created.Equal(consumer.StreamCreated()) || state.LastSequence != 50 {
		t.Errorf("StreamState = %+v, %v; the consumer says %v", state, err, consumer.StreamCreated())
	}
}

func TestDriftConsumersShareTheStream(t *testing.T) {
	client := connect(t, brokertest.New(t))
	all := publish(t, client, 70)
	left := len(all)
	for p := range subject.Partitions {
		consumer := open(t, client, stream.ConsumerConfig{Stream: stream.Traces, Durable: stream.DriftConsumer(p)})
		progress, err := consumer.Progress(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		n := int(progress.Pending) + progress.Unacked
		for _, m := range fetch(t, consumer, n) {
			if m.Partition != p {
				t.Errorf("consumer %d got partition %d", p, m.Partition)
			}
		}
		left -= n
	}
	if left != 0 {
		t.Errorf("%d messages are in no partition", left)
	}
}

func TestAgentOfForeignSubject(t *testing.T) {
	broker := brokertest.New(t)
	client := connect(t, broker)
	js := admin(t, broker.URL())
	for _, token := range []string{"=41", "a%b", "did=3Aok"} {
		if _, err := js.Publish(t.Context(), "aap.trace."+token, []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	consumer := open(t, client, stream.ConsumerConfig{Stream: stream.Traces, Durable: stream.VerifierConsumer})
	for i, want := range []string{"\xff=41", "\xffa%b", "did:ok"} {
		if m := fetch(t, consumer, 1)[0]; m.Agent != want {
			t.Errorf("message %d is of agent %q, want %q", i, m.Agent, want)
		}
	}
}

func TestAcknowledgeMovesTheFloor(t *testing.T) {
	client := connect(t, brokertest.New(t))
	publish(t, client, 5)
	consumer := open(t, client, stream.ConsumerConfig{Stream: stream.Traces, Durable: stream.VerifierConsumer})
	messages := fetch(t, consumer, 5)
	if err := stream.KeepAlive(messages); err != nil {
		t.Fatal(err)
	}
	if err := stream.Acknowledge(t.Context(), append(messages[:2:2], messages[3])); err != nil {
		t.Fatal(err)
	}
	before := time.Now().Round(0)
	progress, err := client.ConsumerProgress(t.Context(), stream.Traces, stream.VerifierConsumer)
	want := stream.Progress{AckFloor: 2, Deliveries: 5, Unacked: 2, Now: progress.Now}
	if err != nil || progress != want || progress.Now.Before(before) {
		t.Errorf("progress %+v, want %+v after %s; error %v", progress, want, before, err)
	}
}

// An acknowledged message may be acknowledged again, because the first ack may have been lost.
func TestAcknowledgeMayBeRepeated(t *testing.T) {
	client := connect(t, brokertest.New(t))
	publish(t, client, 3)
	consumer := open(t, client, stream.ConsumerConfig{Stream: stream.Traces, Durable: stream.VerifierConsumer})
	messages := fetch(t, consumer, 3)
	for i := range messages {
		messages[i].Slim()
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := stream.Acknowledge(cancelled, messages); !errors.Is(err, stream.ErrUnavailable) {
		t.Fatalf("without the time to wait for the answer: %v", err)
	}
	for range 2 {
		if err := stream.Acknowledge(t.Context(), messages); err != nil {
			t.Fatal(err)
		}
	}
	progress, err := consumer.Progress(t.Context())
	if err != nil || progress.AckFloor != 3 || progress.Unacked != 0 {
		t.Errorf("progress %+v, error %v", progress, err)
	}
}

func TestNakIsRedelivered(t *testing.T) {
	client := connect(t, brokertest.New(t))
	publish(t, client, 2)
	consumer := open(t, client, stream.ConsumerConfig{Stream: stream.Traces, Durable: stream.VerifierConsumer})
	messages := fetch(t, consumer, 2)
	if err := messages[0].NakAfter(time.Millisecond); err != nil {
		t.Fatal(err)
	}
	again := fetch(t, consumer, 1)[0]
	if again.Sequence != 1 || !again.Redelivered {
		t.Errorf("message %+v", again)
	}
}

// A broker that was killed may have forgotten its latest deliveries. It confirms no ack of them
// and redelivers them. Acknowledge must not wait for the confirmation.
func TestAckOfAForgottenDelivery(t *testing.T) {
	client := connect(t, brokertest.New(t))
	publish(t, client, 5)
	cfg := stream.ConsumerConfig{Stream: stream.Traces, Durable: stream.VerifierConsumer}
	consumer := open(t, client, cfg)
	messages := fetch(t, consumer, 5)
	if err := stream.ForgetDeliveries(t.Context(), client, stream.Traces, stream.VerifierConsumer); err != nil {
		t.Fatal(err)
	}
	if err := stream.Acknowledge(t.Context(), messages); err != nil {
		t.Fatalf("acknowledge what the broker has forgotten: %v", err)
	}
	again := fetch(t, open(t, client, cfg), 5)
	for i := range again {
		if again[i].Sequence != messages[i].Sequence {
			t.Errorf("message %d is delivered again as %d", messages[i].Sequence, again[i].Sequence)
		}
	}
	if err := stream.Acknowledge(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	if progress, err := client.ConsumerProgress(t.Context(), stream.Traces, stream.VerifierConsumer); err != nil || progress.AckFloor != 5 {
		t.Errorf("%+v, %v", progress, err)
	}
}

func TestRewindDeliversWhatWasNotAcknowledged(t *testing.T) {
	client := connect(t, brokertest.New(t))
	publish(t, client, 6)
	cfg := stream.ConsumerConfig{Stream: stream.Traces, Durable: stream.VerifierConsumer, Rewind: true}
	dead, err := client.OpenConsumer(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Acknowledge(t.Context(), fetch(t, dead, 6)[:2]); err != nil {
		t.Fatal(err)
	}
	dead.Close()
	if _, err := newCommitter(t, client, stream.CommitConfig{}).Publish(t.Context(), records("later", 2)); err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, m := range fetch(t, open(t, client, cfg), 6) {
		got += fmt.Sprintf("%d:%d:%v ", m.Delivery, m.Sequence, m.Redelivered)
	}
	if want := "1:3:true 2:4:true 3:5:true 4:6:true 5:7:false 6:8:false "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestReaderStartsAnywhere(t *testing.T) {
	client := connect(t, brokertest.New(t))
	publish(t, client, 9)
	for from, want := range map[uint64]int{0: 9, 1: 9, 7: 3} {
		messages := fetch(t, open(t, client, stream.ConsumerConfig{Stream: stream.Traces, From: from}), want)
		if first := messages[0].Sequence; first != uint64(10-want) {
			t.Errorf("from %d: the first message is %d", from, first)
		}
	}
}

// A reader that acks nothing knows when it has everything, and after a restart continues where it was.
func TestReaderKnowsTheEnd(t *testing.T) {
	broker := brokertest.New(t)
	client := connect(t, broker)
	publish(t, client, 9)
	reader := open(t, client, stream.ConsumerConfig{Stream: stream.Traces, From: 5})
	fetch(t, reader, 3)
	atEnd := func() bool {
		t.Helper()
		end, _, err := reader.AtEnd(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return end
	}
	if atEnd() {
		t.Error("the reader is at the end before the last messages")
	}
	fetch(t, reader, 2)
	if !atEnd() || !reader.OneServerDates() {
		t.Error("the reader of a single server is not at the end after the last message")
	}
	broker.Restart()
	if err := publishUntilTaken(t.Context(), newCommitter(t, client, stream.CommitConfig{}), records("later", 1)); err != nil {
		t.Fatal(err)
	}
	var later []stream.Message
	for len(later) == 0 { // the reader finds that the server has forgotten it
		var err error
		if later, err = reader.Fetch(t.Context(), nil, 1, 0, 20*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	if later[0].Sequence != 10 || !atEnd() {
		t.Errorf("after the restart the reader has message %d, want 10", later[0].Sequence)
	}
}

func TestConsumerSurvivesRestart(t *testing.T) {
	broker := brokertest.New(t)
	client := connect(t, broker)
	publish(t, client, 3)
	consumer := open(t, client, stream.ConsumerConfig{Stream: stream.Traces, Durable: stream.VerifierConsumer})
	if err := stream.Acknowledge(t.Context(), fetch(t, consumer, 3)); err != nil {
		t.Fatal(err)
	}
	broker.Restart()
	committer := newCommitter(t, client, stream.CommitConfig{})
	if err := publishUntilTaken(t.Context(), committer, records("later", 2)); err != nil {
		t.Fatal(err)
	}
	for _, m := range fetch(t, consumer, 2) {
		if m.Sequence <= 3 {
			t.Errorf("message %d was redelivered although it was acknowledged", m.Sequence)
		}
	}
}

func TestCloseReturnsPrefetchedMessages(t *testing.T) {
	client := connect(t, brokertest.New(t))
	publish(t, client, 50)
	shared := stream.ConsumerConfig{Stream: stream.Traces, Durable: stream.VerifierConsumer}
	first := open(t, client, shared)
	if err := stream.Acknowledge(t.Context(), fetch(t, first, 5)); err != nil {
		t.Fatal(err)
	}
	awaitDeliveries(t, first, 50) // the next reader gets the undelivered ones as new messages
	first.Close()
	for i, m := range fetch(t, open(t, client, shared), 45) { // this takes less than the ack wait
		if m.Sequence < 6 || !m.Redelivered {
			t.Errorf("message %d is sequence %d, redelivered %v", i, m.Sequence, m.Redelivered)
		}
	}
}

// awaitDeliveries waits until the broker has sent n messages ahead.
func awaitDeliveries(t *testing.T, consumer *stream.Consumer, n uint64) {
	t.Helper()
	for {
		progress, err := consumer.Progress(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if progress.Deliveries == n {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
