package verifier

import (
	"context"
	"errors"

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
	PublishReceipts(ctx context.Context, byPartition [][]schema.Receipt) error
	PublishAlerts(ctx context.Context, alerts []stream.Alert) error
	DeadLetter(ctx context.Context, letter stream.DeadLetter) error
}

// commit makes an intake durable and then acknowledges it. The order is the
// promise: rows, dead letters, receipts, alerts, ack. Each step is repeated
// until it holds or ctx ends; what is then not acknowledged comes again.
func (v *verifier) commit(ctx context.Context, in *intake) error {
	release := stream.Hold(ctx, in.messages, func(err error) { v.env.Log.Warn("cannot hold off redelivery", "error", err) })
	defer release()
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
	v.late.recheck(ctx, in)
	return nil
}

func (v *verifier) insert(ctx context.Context, in *intake) error {
	if in.rows.Len() == 0 {
		return nil
	}
	return in.insert(ctx, v.rows)
}

// insert stores the rows; those that can never be stored become dead letters.
func (in *intake) insert(ctx context.Context, rows Rows) error {
	err := rows.InsertTraces(ctx, in.rows)
	if bad, ok := errors.AsType[*store.BatchError](err); ok {
		in.unstorable(bad.Rows)
		return nil
	}
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
	return v.outlet.PublishReceipts(ctx, in.receipts[:])
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
