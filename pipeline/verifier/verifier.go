package verifier

import (
	"context"
	"time"

	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

const stageName = "verifier"

// Source reads the traces of the partitions that this process owns, in order, and records how far
// they are done (ownership.Term).
type Source interface {
	Fetch(ctx context.Context, into []stream.Message, maxMessages, maxBytes int, wait time.Duration) ([]stream.Message, error)
	StreamCreated() time.Time
	Begin(ctx context.Context, through uint64) error
	Done(ctx context.Context, through uint64) error
}

// Rows stores traces and verdicts durably (store.Store).
type Rows interface {
	InsertTraces(ctx context.Context, rows *store.TraceBatch) error
}

// Outlet publishes the verifier's results (stream.Client).
type Outlet interface {
	PublishReceipts(ctx context.Context, byPartition [][]schema.Receipt) error
	PublishAlerts(ctx context.Context, alerts []wire.Alert) error
	DeadLetter(ctx context.Context, letter wire.DeadLetter) error
}

// verifier is the running stage. One goroutine fetches and judges (collect), another commits.
// While a batch is committed the next one is filled.
type verifier struct {
	env       *service.Env
	cfg       *Config
	source    Source // of the current term
	rows      Rows
	outlet    Outlet
	metrics   *metrics
	workspace workspace
	newRows   func() *store.TraceBatch
	late      *lateCards

	inbox []stream.Message
}

// Messages are fetched in slices, so judging overlaps with delivery.
const (
	sliceRows = 1000
	sliceWait = 20 * time.Millisecond
)

// run judges until ctx ends, and then commits the last batch within the drain budget.
func (v *verifier) run(ctx context.Context) error {
	work, stop := v.env.Drain(ctx)
	defer stop()
	full, free := make(chan *batch), make(chan *batch, 2)
	for range cap(free) {
		free <- &batch{rows: v.newRows(), unknown: map[string]bool{}}
	}
	return service.Group(work,
		func(work context.Context) error {
			defer close(full)
			return v.collect(ctx, work, free, full)
		},
		func(work context.Context) error {
			for b := range full {
				if err := v.commit(work, b); err != nil {
					return err
				}
				b.reset()
				free <- b
			}
			return nil
		})
}

// collect fills one batch after the other and passes each to the committer when it is due.
func (v *verifier) collect(ctx, work context.Context, free <-chan *batch, full chan<- *batch) error {
	for ctx.Err() == nil && work.Err() == nil {
		b := <-free
		passed, err := v.fill(ctx, work, b, full)
		if err != nil {
			return err
		}
		if passed {
			continue
		}
		select {
		case full <- b:
		case <-work.Done():
			return work.Err()
		}
	}
	return nil
}

// fill judges traces into the batch until it is full or ctx has ended. A batch that is old enough
// is passed on as soon as its commit can begin. It grows while the previous batch is still being
// committed, so batches are large under load.
func (v *verifier) fill(ctx, work context.Context, b *batch, full chan<- *batch) (passed bool, err error) {
	for ctx.Err() == nil && work.Err() == nil && !v.cfg.BatchFull(len(b.messages), b.bytes) {
		if v.cfg.BatchDue(len(b.messages), b.bytes, b.since, time.Now()) {
			select {
			case full <- b:
				return true, nil
			default:
			}
		}
		v.inbox = v.inbox[:0]
		err := v.env.Retry.Do(ctx, "fetch traces", func() (err error) { // after a crash between here and the last step of commit they are read again
			most := min(sliceRows, v.cfg.BatchRows-len(b.messages))
			v.inbox, err = v.source.Fetch(ctx, v.inbox, most, v.cfg.BatchBytes-b.bytes, sliceWait)
			if len(v.inbox) > 0 {
				return nil
			}
			return err
		})
		if err != nil && ctx.Err() == nil {
			return false, err
		}
		if err := v.judgeAll(work, b); err != nil {
			return false, err
		}
	}
	return false, nil
}

func (v *verifier) judgeAll(ctx context.Context, b *batch) error {
	now := time.Now()
	created := v.source.StreamCreated()
	if b.rows.Len() == 0 {
		_, b.revocations = v.late.registry.RevocationsSince(0)
	}
	v.workspace.warm(ctx, v.inbox)
	for i := range v.inbox {
		m := &v.inbox[i]
		b.take(*m, now)
		stored, err := v.workspace.judge(ctx, b, m, created, now)
		if err != nil {
			err = v.env.Retry.Do(ctx, "judge trace", func() (err error) {
				stored, err = v.workspace.judge(ctx, b, m, created, now)
				return err
			})
		}
		if err != nil {
			return err
		}
		if stored {
			v.metrics.judged(&v.workspace.verdict)
		}
	}
	return nil
}

// commit makes a batch durable and then records that it is done. The order of the steps is the
// guarantee. Each step is repeated until it succeeds or ctx ends. After a crash, or when the
// partition goes to another process, all messages of the batch are read again, and each step is
// idempotent.
func (v *verifier) commit(ctx context.Context, b *batch) error {
	if len(b.messages) == 0 {
		return nil
	}
	through := b.messages[len(b.messages)-1].Sequence
	span := v.env.Spans.Begin("verify traces", b.since)
	span.Number("plumbline.traces", len(b.messages))
	for _, step := range []struct {
		operation string
		do        func() error
	}{
		{"record that traces are begun", func() error { return v.source.Begin(ctx, through) }},     // after a crash their rows are looked up before they are inserted
		{"insert traces", func() error { return b.insert(ctx, v.rows) }},                           // after a crash the same rows again: reading collapses them
		{"publish dead letters", func() error { return b.publishDead(ctx, v.outlet) }},             // after a crash the same letters again, under the same ids
		{"publish receipts", func() error { return v.outlet.PublishReceipts(ctx, b.receipts[:]) }}, // after a crash the same receipts again: the exporter counts each once
		{"publish alerts", func() error { return b.publishAlerts(ctx, v.outlet) }},                 // after a crash the same alerts again, under the same ids
		{"judge traces of late cards", func() error { return v.late.recheck(ctx, b) }},             // after a crash the traces are judged by these cards
		{"record that traces are done", func() error { return v.source.Done(ctx, through) }},       // after a crash nothing is read again
	} {
		span.Step(step.operation)
		if err := v.env.Retry.Do(ctx, step.operation, step.do); err != nil {
			span.End(err)
			return err
		}
	}
	span.End(nil)
	v.metrics.committed(b)
	v.late.recheckRevocations(b) // a start checks all revocations, so a crash before this loses nothing
	return nil
}
