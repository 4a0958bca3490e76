package ingest

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/wire"
)

// Outlet stores dead letters durably (stream.Client).
type Outlet interface {
	DeadLetters(ctx context.Context, letters []wire.DeadLetter) error
}

// deadLetters stores refused lines as dead letters asynchronously; requests do not wait. Its
// memory is limited. When it is full, further dead letters are dropped and counted: the publisher
// has already received the refusal, and a flood of invalid lines must not fill the broker.
type deadLetters struct {
	env     *service.Env
	outlet  Outlet
	metrics *metrics
	queue   chan wire.DeadLetter
	held    atomic.Int64 // bytes in the queue
}

const (
	maxDeadLetters     = 10_000
	maxDeadLetterBytes = 32 << 20

	// deadLetterBatch is how many are published together. During a flood, publishing one by one
	// would be too slow to finish within the drain.
	deadLetterBatch = 500
)

func newDeadLetters(env *service.Env, outlet Outlet, metrics *metrics) *deadLetters {
	return &deadLetters{env: env, outlet: outlet, metrics: metrics, queue: make(chan wire.DeadLetter, maxDeadLetters)}
}

// add queues a dead letter. The queue then owns it.
func (d *deadLetters) add(letter wire.DeadLetter) {
	size := sizeOf(&letter)
	if d.held.Add(size) <= maxDeadLetterBytes {
		select {
		case d.queue <- letter:
			return
		default:
		}
	}
	d.held.Add(-size)
	d.metrics.dropped.Inc()
}

func sizeOf(letter *wire.DeadLetter) int64 {
	size := len(letter.Data) + len(letter.Agent)
	for i := range letter.Faults {
		size += len(letter.Faults[i].Pointer) + len(letter.Faults[i].Message)
	}
	return int64(size)
}

// run publishes what is queued, until closed or until ctx ends. After closed it publishes what is left;
// when ctx ends, what is left is counted as dropped.
func (d *deadLetters) run(ctx context.Context, closed <-chan struct{}) error {
	for ended := false; !ended || len(d.queue) > 0; {
		var batch []wire.DeadLetter
		select {
		case first := <-d.queue:
			batch = append(batch, first)
		case <-closed:
			ended = true
		case <-ctx.Done(): // another part failed: what is left is counted as dropped
			ended = true
		}
		for len(batch) < deadLetterBatch && len(d.queue) > 0 {
			batch = append(batch, <-d.queue)
		}
		if len(batch) > 0 {
			d.publish(ctx, batch)
		}
	}
	return nil
}

// publish stores the dead letters. One that the broker will never accept is dropped alone. After a
// crash in between, those that were stored stay, and the others are lost.
func (d *deadLetters) publish(ctx context.Context, batch []wire.DeadLetter) {
	err := d.env.Retry.Do(ctx, "publish dead letters", func() error {
		err := d.outlet.DeadLetters(ctx, batch)
		if err != nil && !errors.Is(err, stream.ErrUnavailable) {
			return service.Permanent(err)
		}
		return err
	})
	if err != nil && ctx.Err() == nil && len(batch) > 1 {
		for i := range batch {
			d.publish(ctx, batch[i:i+1])
		}
		return
	}
	if err != nil {
		d.env.Log.Error("refused lines are not stored as dead letters", "lines", len(batch), "error", err)
	}
	for i := range batch {
		d.held.Add(-sizeOf(&batch[i]))
		if err == nil {
			d.metrics.deadLetters.WithLabelValues(batch[i].Reason).Inc()
		} else {
			d.metrics.dropped.Inc()
		}
	}
}
