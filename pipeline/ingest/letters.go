package ingest

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/plumbline/plumbline/pipeline/run"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// Outlet is where dead letters become durable (stream.Client).
type Outlet interface {
	DeadLetter(ctx context.Context, letter stream.DeadLetter) error
}

// letters keeps refused lines as dead letters, behind the backs of the requests:
// nobody waits for it. Its memory is bounded; what comes while it is full is
// dropped and counted, for the publisher has been told, and a flood of rubbish
// must not fill the broker.
type letters struct {
	env     *run.Env
	outlet  Outlet
	metrics *metrics
	queue   chan stream.DeadLetter
	held    atomic.Int64 // bytes in the queue
}

const (
	maxLetters     = 10_000
	maxLetterBytes = 32 << 20
)

func newLetters(env *run.Env, outlet Outlet, metrics *metrics) *letters {
	return &letters{env: env, outlet: outlet, metrics: metrics, queue: make(chan stream.DeadLetter, maxLetters)}
}

// add queues a letter, which belongs to the queue from now on.
func (l *letters) add(letter stream.DeadLetter) {
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

func sizeOf(letter *stream.DeadLetter) int64 {
	size := len(letter.Data) + len(letter.Agent)
	for i := range letter.Faults {
		size += len(letter.Faults[i].Pointer) + len(letter.Faults[i].Message)
	}
	return int64(size)
}

// run publishes what is queued until closed; then what is left, within ctx.
func (l *letters) run(ctx context.Context, closed <-chan struct{}) error {
	for {
		select {
		case letter := <-l.queue:
			l.publish(ctx, letter)
		case <-closed:
			for len(l.queue) > 0 {
				l.publish(ctx, <-l.queue)
			}
			return nil
		}
	}
}

// publish gives up only when ctx ends or the broker will never take the letter.
func (l *letters) publish(ctx context.Context, letter stream.DeadLetter) {
	defer l.held.Add(-sizeOf(&letter))
	err := l.env.Retry.Do(ctx, "publish dead letter", func() error {
		err := l.outlet.DeadLetter(ctx, letter)
		if err != nil && !errors.Is(err, stream.ErrUnavailable) {
			return run.Permanent(err)
		}
		return err
	})
	if err != nil {
		l.metrics.dropped.Inc()
		l.env.Log.Error("a refused line is not kept", "reason", letter.Reason, "agent", letter.Agent, "error", err)
		return
	}
	l.metrics.deadLetters.WithLabelValues(letter.Reason).Inc()
}
