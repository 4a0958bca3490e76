package verifier

import (
	"cmp"
	"context"
	"time"

	"github.com/plumbline/plumbline/pipeline/run"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// carrier brings a stream of rare messages into ClickHouse: small batches, and no
// hurry. Inserts are idempotent.
type carrier struct {
	env    *run.Env
	what   string // the messages, in logs and metrics
	source Source
	store  func(ctx context.Context, inbox []stream.Message) error // it repeats by itself what can succeed

	rows int           // most of one fetch; carriedRows where 0
	wait time.Duration // of one fetch, from one to the next; carriedWait where 0
}

const (
	carriedRows  = 1000
	carriedBytes = 16 << 20
	carriedWait  = 500 * time.Millisecond
)

// run acknowledges what it has stored. It ends when ctx does, with the work in
// hand done.
func (c *carrier) run(ctx context.Context) error {
	work, stop := c.env.Drain(ctx)
	defer stop()
	rows, wait := cmp.Or(c.rows, carriedRows), cmp.Or(c.wait, carriedWait)
	var inbox []stream.Message
	for ctx.Err() == nil {
		err := c.env.Retry.Do(ctx, "fetch "+c.what, func() (err error) {
			inbox, err = c.source.Fetch(ctx, inbox[:0], rows, carriedBytes, wait)
			if len(inbox) > 0 {
				return nil
			}
			return err
		})
		if err != nil && ctx.Err() == nil {
			return err
		}
		if len(inbox) == 0 {
			continue
		}
		if err := c.store(work, inbox); err != nil {
			return err
		}
		if err := c.env.Retry.Do(work, "acknowledge "+c.what, func() error { return stream.Acknowledge(work, inbox) }); err != nil {
			return err
		}
	}
	return nil
}
