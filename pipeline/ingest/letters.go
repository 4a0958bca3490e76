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

// letters stores refused lines as dead letters asynchronously; requests do not wait. Its memory
// is limited. When it is full, further letters are dropped and counted: the publisher has already
// received the refusal, and a flood of invalid lines must not fill the broker.
type letters struct {
	env     *service.Env
	outlet  Outlet
	metrics *metrics
	queue   chan wire.DeadLetter
	held    atomic.Int64 // bytes in the queue
}

const (
	maxLetters     = 10_000
	maxLetterBytes = 32 << 20
)

func newLetters(env *service.Env, outlet Outlet, metrics *metrics) *letters {
	return &letters{env: env, outlet: outlet, metrics: metrics, queue: make(chan wire.DeadLetter, maxLetters)}
}

// add queues a letter. The queue then owns it.
func (l *letters) add(letter wire.DeadLetter) {
	size := sizeOf(&letter)
	if l.held.Add(size) <= maxLetterBytes {
		select {
		case l.queue <- letter:
			return
		default:
		}
	}
	l.held.Add(-size)
	l.metrics.dropped.Inc()
}

func sizeOf(letter *wire.DeadLetter) int64 {
	size := len(letter.Data) + len(letter.Agent)
	for i := range letter.Faults {
		size += len(letter.Faults[i].Pointer) + len(letter.Faults[i].Message)
	}
	return int64(size)
}

// run publishes what is queued, until closed or until ctx ends. It then publishes what is left.
func (l *letters) run(ctx context.Context, closed <-chan struct{}) error {
	for {
		select {
		case first := <-l.queue:
			l.publish(ctx, l.more(first))
			continue
		case <-closed:
		case <-ctx.Done(): // another part failed: what is left is counted as dropped
		}
		for len(l.queue) > 0 {
			l.publish(ctx, l.more(<-l.queue))
		}
		return nil
	}
}

// letterBatch is how many letters are published together. During a flood, publishing one by one
// would be too slow to finish within the drain.
const letterBatch = 500

// more returns the first letter and those queued after it.
func (l *letters) more(first wire.DeadLetter) []wire.DeadLetter {
	batch := []wire.DeadLetter{first}
	for len(batch) < letterBatch && len(l.queue) > 0 {
		batch = append(batch, <-l.queue)
	}
	return batch
}

// publish stores the letters. A letter that the broker will never accept is dropped alone.
func (l *letters) publish(ctx context.Context, batch []wire.DeadLetter) {
	err := l.env.Retry.Do(ctx, "publish dead letters", func() error {
		err := l.outlet.DeadLetters(ctx, batch)
		if err != nil && !errors.Is(err, stream.ErrUnavailable) {
			return service.Permanent(err)
		}
		return err
	})
	if err != nil && ctx.Err() == nil && len(batch) > 1 {
		for i := range batch {
			l.publish(ctx, batch[i:i+1])
		}
		return
	}
	if err != nil {
		l.env.Log.Error("refused lines are not kept", "lines", len(batch), "error", err)
	}
	l.settle(batch, err == nil)
}

func (l *letters) settle(batch []wire.DeadLetter, kept bool) {
	for i := range batch {
		l.held.Add(-sizeOf(&batch[i]))
		if kept {
			l.metrics.deadLetters.WithLabelValues(batch[i].Reason).Inc()
		} else {
			l.metrics.dropped.Inc()
		}
	}
}
