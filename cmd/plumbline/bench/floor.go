package bench

import (
	"context"
	"errors"
	"time"

	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/verifier"
)

// floor is the loop of the verifier without judging. It fetches, inserts
// and acknowledges as the verifier does: one goroutine fills while another commits.
type floor struct {
	source *stream.Consumer
	rows   *store.Floor
	as     *verifier.Config

	inbox []stream.Message
}

// filling is the batch of one commit.
type filling struct {
	messages []stream.Message
	bytes    int       // total size of the messages
	since    time.Time // when the first one joined
	rows     *store.FloorBatch
}

// These are the verifier's constants for fetching.
const (
	sliceRows = 1000
	sliceWait = 20 * time.Millisecond
)

// run copies until ctx ends.
func (f *floor) run(ctx context.Context) error {
	full, free := make(chan *filling), make(chan *filling, 2)
	for range cap(free) {
		free <- &filling{rows: store.NewFloorBatch()}
	}
	err := service.Group(ctx,
		func(ctx context.Context) error { return f.collect(ctx, free, full) },
		func(ctx context.Context) error { return f.store(ctx, full, free) })
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// collect fills one batch after the other and passes each on when it is due.
func (f *floor) collect(ctx context.Context, free <-chan *filling, full chan<- *filling) error {
	defer close(full)
	for {
		var in *filling
		select {
		case in = <-free:
		case <-ctx.Done():
			return ctx.Err()
		}
		handed, err := f.fill(ctx, in, full)
		if err != nil {
			return err
		}
		if handed {
			continue
		}
		select {
		case full <- in:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// fill adds messages to the batch until it is full, or until it is old enough and was passed on.
func (f *floor) fill(ctx context.Context, in *filling, full chan<- *filling) (handed bool, err error) {
	for !f.as.BatchFull(len(in.messages), in.bytes) {
		if f.as.BatchDue(len(in.messages), in.bytes, in.since, time.Now()) {
			select {
			case full <- in:
				return true, nil
			default:
			}
		}
		most := min(sliceRows, f.as.BatchRows-len(in.messages))
		f.inbox, err = f.source.Fetch(ctx, f.inbox[:0], most, f.as.BatchBytes-in.bytes, sliceWait)
		if err != nil {
			return false, err
		}
		if len(in.messages) == 0 {
			in.since = time.Now()
		}
		for i := range f.inbox {
			m := &f.inbox[i]
			in.rows.Add(m.Sequence, m.Data)
			in.messages, in.bytes = append(in.messages, *m), in.bytes+len(m.Data)
		}
	}
	return false, nil
}

// store makes each batch durable, and then acknowledges it.
func (f *floor) store(ctx context.Context, full <-chan *filling, free chan<- *filling) error {
	for in := range full {
		if err := f.rows.Insert(ctx, in.rows); err != nil {
			return err
		}
		if err := stream.Acknowledge(ctx, in.messages); err != nil {
			return err
		}
		clear(in.messages)
		in.messages, in.bytes = in.messages[:0], 0
		in.rows.Reset()
		free <- in
	}
	return nil
}
