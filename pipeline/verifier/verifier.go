package verifier

import (
	"context"
	"time"

	"github.com/plumbline/plumbline/pipeline/batch"
	"github.com/plumbline/plumbline/pipeline/run"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
)

const stageName = "verifier"

// Source is where traces come from (stream.Consumer).
type Source interface {
	Fetch(ctx context.Context, into []stream.Message, maxMessages, maxBytes int, wait time.Duration) ([]stream.Message, error)
	StreamCreated() time.Time
}

// verifier is the running stage: one goroutine judges while another commits.
type verifier struct {
	env     *run.Env
	limits  batch.Limits
	source  Source
	rows    Rows
	outlet  Outlet
	metrics *metrics
	bench   bench
	newRows func() *store.TraceBatch
	late    *lateCards

	inbox []stream.Message
}

// Messages are fetched in slices, so that judging overlaps with delivery.
const (
	sliceRows = 1000
	sliceWait = 20 * time.Millisecond
)

// run judges until ctx ends, then commits what is in hand within the drain
// budget.
func (v *verifier) run(ctx context.Context) error {
	work, stop := v.env.Drain(ctx)
	defer stop()
	full, free := make(chan *intake), make(chan *intake, 2)
	for range cap(free) {
		free <- &intake{rows: v.newRows(), unknown: map[string]bool{}}
	}
	return run.Group(work,
		func(work context.Context) error {
			defer close(full)
			return v.collect(ctx, work, free, full)
		},
		func(work context.Context) error {
			for in := range full {
				if err := v.commit(work, in); err != nil {
					return err
				}
				in.reset()
				free <- in
			}
			return nil
		})
}

// collect fills intakes one after the other and hands each on when it is due.
func (v *verifier) collect(ctx, work context.Context, free <-chan *intake, full chan<- *intake) error {
	for ctx.Err() == nil && work.Err() == nil {
		in := <-free
		handed, err := v.fill(ctx, work, in, full)
		if err != nil {
			return err
		}
		if handed {
			continue
		}
		select {
		case full <- in:
		case <-work.Done():
			return work.Err()
		}
	}
	return nil
}

// fill judges traces into the intake until it is full, or ctx has ended. One that
// is old enough is handed on as soon as its commit can begin: while the one
// before is still being committed it grows, so that under load batches are large.
func (v *verifier) fill(ctx, work context.Context, in *intake, full chan<- *intake) (handed bool, err error) {
	for ctx.Err() == nil && !in.meter.Full(v.limits) {
		if in.meter.Due(v.limits, time.Now()) {
			select {
			case full <- in:
				return true, nil
			default:
			}
		}
		if err := v.fetch(ctx, in); err != nil && ctx.Err() == nil {
			return false, err
		}
		if err := v.judgeAll(work, in); err != nil {
			return false, err
		}
	}
	return false, nil
}

// fetch fetches a slice of what there is room for.
func (v *verifier) fetch(ctx context.Context, in *intake) error {
	v.inbox = v.inbox[:0]
	return v.retry(ctx, "fetch traces", func() (err error) {
		room := v.limits.Bytes - in.meter.Bytes()
		v.inbox, err = v.source.Fetch(ctx, v.inbox, min(sliceRows, v.limits.Rows-in.meter.Rows()), room, sliceWait)
		if len(v.inbox) > 0 {
			return nil
		}
		return err
	})
}

// judgeAll judges the messages of the inbox.
func (v *verifier) judgeAll(ctx context.Context, in *intake) error {
	now := time.Now()
	created := v.source.StreamCreated()
	if in.rows.Len() == 0 {
		in.revocations = v.late.revocations()
	}
	v.bench.warm(ctx, v.inbox)
	for i := range v.inbox {
		m := &v.inbox[i]
		in.take(*m, now)
		stored, err := v.bench.put(ctx, in, m, created, now)
		if err != nil {
			err = v.retry(ctx, "judge trace", func() (err error) {
				stored, err = v.bench.put(ctx, in, m, created, now)
				return err
			})
		}
		if err != nil {
			return err
		}
		if stored {
			v.metrics.judged(&v.bench.verdict)
		}
	}
	return nil
}
