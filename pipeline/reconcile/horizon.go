package reconcile

import (
	"context"
	"time"

	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
)

// horizon is the progress of all services when the comparison began. Everything up to it has been
// stored.
type horizon struct {
	floor    uint64    // the verifier has acked every message of TRACES up to this sequence
	created  time.Time // of TRACES
	first    uint64    // first message that TRACES still holds
	lettered bool      // every dead letter written until then is a row
	receipts stream.State

	measured  [subject.Partitions]uint64 // drift has acked every message of the partition up to this sequence
	measuring bool                       // drift has acked at least one message
}

// readHorizon reads the verifier's ack floor first. All receipts and dead letters of messages up
// to it have been written by then.
func (c *check) readHorizon(ctx context.Context) error {
	progress, err := c.Client.ConsumerProgress(ctx, stream.Traces, stream.VerifierConsumer)
	if err != nil {
		return err
	}
	traces, err := c.Client.StreamState(ctx, stream.Traces)
	if err != nil {
		return err
	}
	letters, err := c.Client.StreamState(ctx, stream.DeadLetters)
	if err != nil {
		return err
	}
	if c.Now.IsZero() {
		c.Now = traces.Now
	}
	h := &c.horizon
	h.floor, h.created, h.first = progress.AckFloor, traces.Created, traces.FirstSequence
	if h.receipts, err = c.Client.StreamState(ctx, stream.Receipts); err != nil {
		return err
	}
	for p := range h.measured {
		drift, err := c.Client.ConsumerProgress(ctx, stream.Traces, stream.DriftConsumer(p))
		if err != nil {
			return err
		}
		h.measured[p], h.measuring = drift.AckFloor, h.measuring || drift.AckFloor > 0
	}
	h.lettered, err = c.await(ctx, func() (bool, error) {
		progress, err := c.Client.ConsumerProgress(ctx, stream.DeadLetters, stream.DeadLetterConsumer)
		return progress.AckFloor >= letters.LastSequence, err
	})
	if err == nil && !h.lettered {
		c.skip("dead letters that are not in the database yet: is the verifier running?")
	}
	return err
}

// patience is how long a step waits for work in progress.
const patience = 10 * time.Second

// await polls holds until it returns true, for at most patience.
func (c *check) await(ctx context.Context, holds func() (bool, error)) (bool, error) {
	deadline := time.After(patience)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		done, err := holds()
		if done || err != nil {
			return done, err
		}
		select {
		case <-tick.C:
		case <-deadline:
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}
