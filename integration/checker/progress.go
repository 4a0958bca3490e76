package checker

import (
	"context"
	"errors"
	"testing"

	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/seal"
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

// AwaitRest waits until every consumer has acknowledged everything and no session is being sealed. If the
// broker does not answer, AwaitRest asks again.
func AwaitRest(t testing.TB, client *stream.Client) {
	t.Helper()
	for _, c := range consumers() {
		pipelinetest.Await(t, "consumer "+c.name+" to come to rest", func() bool {
			progress, err := client.ConsumerProgress(t.Context(), c.stream, c.name)
			return err == nil && progress.Pending == 0 && progress.Unacked == 0
		})
	}
	// The rows of bundles are seen before their alerts and claims are written: a plan is marked as sealed last.
	pipelinetest.Await(t, "the plans of bundles to be carried out", func() bool {
		planned, err := sealing(t.Context(), client)
		return err == nil && planned == 0
	})
}

// sealing returns how many sessions have a plan that is not marked as sealed.
func sealing(ctx context.Context, client *stream.Client) (planned int, err error) {
	bucket, err := client.Bucket(ctx, stream.Seals)
	if err != nil {
		return 0, err
	}
	watching, read := context.WithCancel(ctx)
	defer read()
	var invalid error
	err = bucket.Watch(watching, "*.*", 0, func(change stream.Change) {
		if change.Deleted {
			return
		}
		record, err := seal.Decode(change.Value)
		if invalid = errors.Join(invalid, err); err == nil && record.State == seal.Planned {
			planned++
		}
	}, read)
	if watching.Err() != nil && ctx.Err() == nil { // all plans are read
		err = nil
	}
	return planned, errors.Join(invalid, err)
}
