package checker

import (
	"context"
	"errors"
	"testing"
	"time"

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

// AwaitAcked waits until every consumer of checkAcks has acknowledged everything. If the broker does not answer, it
// asks again.
func AwaitAcked(t testing.TB, client *stream.Client) {
	t.Helper()
	for _, c := range consumers() {
		c.await(t, client)
	}
}

func (c consumer) await(t testing.TB, client *stream.Client) {
	t.Helper()
	pipelinetest.Await(t, "consumer "+c.name+" to come to rest", func() bool {
		progress, err := client.ConsumerProgress(t.Context(), c.stream, c.name)
		return err == nil && progress.Pending == 0 && progress.Unacked == 0
	})
}

// AwaitRest is AwaitAcked, and then waits until every plan in bucket seals is carried out and what that publishes is in
// the ledger. Wait for the expected bundles first: a session that is due may have no plan yet.
func AwaitRest(t testing.TB, client *stream.Client) {
	t.Helper()
	AwaitAcked(t, client)
	// The exporter inserts the rows of a bundle first. Then it writes alerts and claims. Last it marks the plan as sealed.
	pipelinetest.Await(t, "the plans of bundles to be carried out", func() bool {
		open, err := openPlans(t.Context(), client)
		if err != nil {
			t.Logf("read the plans of bundles: %v", err)
		}
		return err == nil && open == 0
	})
	for _, c := range []consumer{
		{stream.Alerts, stream.FindingsConsumer}, {stream.MessageRecords, stream.MessageConsumer}, {stream.Coherence, stream.CoherenceConsumer},
	} {
		c.await(t, client)
	}
}

// readWithin is how long the plans are read before they are read again.
const readWithin = 30 * time.Second

// openPlans returns how many sessions have a plan that is not marked as sealed.
func openPlans(ctx context.Context, client *stream.Client) (planned int, err error) {
	ctx, stop := context.WithTimeout(ctx, readWithin)
	defer stop()
	bucket, err := client.Bucket(ctx, stream.Seals)
	if err != nil {
		return 0, err
	}
	all := false
	var invalid error
	err = bucket.Watch(ctx, "*.*", 0, func(change stream.Change) {
		if change.Deleted {
			return
		}
		record, err := seal.Decode(change.Value)
		if invalid = errors.Join(invalid, err); err == nil && record.State == seal.Planned {
			planned++
		}
	}, func() {
		all = true
		stop()
	})
	if all {
		err = nil
	}
	return planned, errors.Join(invalid, err)
}
