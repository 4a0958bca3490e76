package verifier

import (
	"context"
	"errors"
	"time"

	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// Rows is where traces and verdicts become durable (store.Store).
type Rows interface {
	InsertTraces(ctx context.Context, rows *store.TraceBatch) error
}

// Outlet is where the verifier publishes (stream.Client).
type Outlet interface {
	PublishReceipts(ctx context.Context, partition int, receipts []schema.Receipt) error
	PublishAlerts(ctx context.Context, alerts []stream.Alert) error
	DeadLetter(ctx context.Context, letter stream.DeadLetter) error
}

// keepAliveEvery is a third of the broker's ack wait.
const keepAliveEvery = 20 * time.Second

// commit makes an intake durable and then acknowledges it. The order is the
// promise: rows, dead letters, receipts, alerts, ack. Each step is repeated
// until it holds or ctx ends; what is then not acknowledged comes again.
func (v *verifier) commit(ctx context.Context, in *intake) error {
	alive := v.keepAlive(ctx, in.messages)
	defer alive()
	for _, step := range []struct {
		operation string
		do        func(context.Context, *intake) error
	}{
		{"insert traces", v.insert},
		{"publish dead letters", v.publishDead},
		{"publish receipts", v.publishReceipts},
		{"publish alerts", v.publishAlerts},
		{"acknowledge traces", acknowledge},
	} {
		if err := v.retry(ctx, step.operation, func() error { return step.do(ctx, in) }); err != nil {
			return err
		}
	}
	v.metrics.committed(in)
	v.late.recheck(ctx, in.unknown)
	return nil
}

// insert stores the rows; those that can never be stored become dead letters.
func (v *verifier) insert(ctx context.Context, in *intake) error {
	if in.rows.Len() == 0 {
		return nil
	}
	err := v.rows.InsertTraces(ctx, in.rows)
	var bad *store.BatchError
	if errors.As(err, &bad) {
		in.unstorable(bad.Rows)
		err = nil
	}
	v.database.Report(err)
	return err
}

func (v *verifier) publishDead(ctx context.Context, in *intake) error {
	for _, letter := range in.dead {
		if err := v.outlet.DeadLetter(ctx, letter); err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) publishReceipts(ctx context.Context, in *intake) error {
	for partition, receipts := range in.receipts {
		if len(receipts) == 0 {
			continue
		}
		if err := v.outlet.PublishReceipts(ctx, partition, receipts); err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) publishAlerts(ctx context.Context, in *intake) error {
	if len(in.alerts) == 0 {
		return nil
	}
	return v.outlet.PublishAlerts(ctx, in.alerts)
}

func acknowledge(ctx context.Context, in *intake) error {
	return stream.Acknowledge(ctx, in.messages)
}

func (v *verifier) retry(ctx context.Context, operation string, attempt func() error) error {
	return v.env.Retry.Do(ctx, operation, attempt)
}

// keepAlive holds off redelivery while a commit lasts.
func (v *verifier) keepAlive(ctx context.Context, messages []stream.Message) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(keepAliveEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if err := stream.KeepAlive(messages); err != nil {
					v.env.Log.Warn("cannot hold off redelivery", "error", err)
				}
			}
		}
	}()
	return func() { cancel(); <-ended }
}
