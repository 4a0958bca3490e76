package checker

import (
	"testing"

	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
)

// checkAcks: every consumer has acknowledged everything.
func (k *checker) checkAcks() {
	for _, c := range consumers() {
		progress, err := k.Client.ConsumerProgress(k.Context(), c.stream, c.name)
		if err != nil {
			k.Fatal(err)
		}
		if progress.Pending > 0 || progress.Unacked > 0 {
			k.Errorf("acks: consumer %s on %s has %d messages to come and %d not acknowledged", c.name, c.stream, progress.Pending, progress.Unacked)
		}
	}
	state, err := k.Client.StreamState(k.Context(), stream.Traces)
	if err != nil {
		k.Fatal(err)
	}
	progress, err := k.Client.ConsumerProgress(k.Context(), stream.Traces, stream.VerifierConsumer)
	if err != nil {
		k.Fatal(err)
	}
	if progress.AckFloor != state.LastSequence {
		k.Errorf("acks: the verifier's ack floor is %d, the stream ends at %d", progress.AckFloor, state.LastSequence)
	}
}

type consumer struct{ stream, name string }

// consumers returns the consumers that acknowledge their work.
func consumers() []consumer {
	all := []consumer{{stream.Traces, stream.VerifierConsumer}, {stream.DeadLetters, stream.DeadLetterConsumer}}
	for partition := range subject.Partitions {
		all = append(all, consumer{stream.Traces, stream.DriftConsumer(partition)})
	}
	return all
}

// AwaitRest waits until every consumer has acknowledged everything. If the broker
// does not answer, AwaitRest asks again.
func AwaitRest(t testing.TB, client *stream.Client) {
	t.Helper()
	for _, c := range consumers() {
		pipelinetest.Await(t, "consumer "+c.name+" to come to rest", func() bool {
			progress, err := client.ConsumerProgress(t.Context(), c.stream, c.name)
			return err == nil && progress.Pending == 0 && progress.Unacked == 0
		})
	}
}
