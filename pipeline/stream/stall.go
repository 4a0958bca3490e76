package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A pull request can be lost on its way to the server, and so can the status
// that ends it. The client library notices within one wait of several
// heartbeats; callers of Fetch wait for less. So a consumer that has brought
// nothing for a while asks the server whether it has a request of ours at all.

// stallAfter is how long that while is.
const stallAfter = 3 * pullHeartbeat

// heal starts reading anew where the server has messages for the consumer and
// nobody asks for them, at two looks in a row.
func (r *Consumer) heal(ctx context.Context) error {
	if time.Since(r.quiet) < r.cfg.StallAfter || r.client.conn.Status() != nats.CONNECTED {
		return nil
	}
	stalled, err := r.stalled(ctx)
	if err != nil {
		return fmt.Errorf("ask whether the consumer stalls: %w", classify(err))
	}
	r.quiet = time.Now()
	if !stalled || !r.suspected {
		r.suspected = stalled // a request may just be on its way: the next look tells
		return nil
	}
	r.suspected = false
	r.client.cfg.Logger.Warn("the broker has messages and no request for them: reading starts anew", "stream", r.cfg.Stream, "consumer", r.cfg.Durable)
	r.messages.Stop()
	r.ended = true
	return r.resume(ctx)
}

// stalled tells whether messages wait for the consumer and no request does.
func (r *Consumer) stalled(ctx context.Context) (bool, error) {
	ctx, cancel := r.client.within(ctx, r.client.cfg.Timeout)
	defer cancel()
	info, err := r.consumer.Info(ctx)
	if r.cfg.Durable == "" && errors.Is(err, jetstream.ErrConsumerNotFound) {
		return true, nil // the server forgets a reader that asks for nothing
	}
	if err != nil {
		return false, err
	}
	return info.NumPending > 0 && info.NumWaiting == 0, nil
}

// resume goes on reading where reading has ended: a durable consumer where the server knows
// it to be, a reader behind the last message that it was given. After an error the next
// Fetch tries again.
func (r *Consumer) resume(ctx context.Context) error {
	ctx, cancel := r.client.within(ctx, r.client.cfg.Timeout)
	defer cancel()
	err := r.bindAgain(ctx)
	if err == nil {
		err = r.pull()
	}
	r.ended = err != nil
	if err != nil {
		return fmt.Errorf("begin again to read stream %s: %w", r.cfg.Stream, classify(err))
	}
	return nil
}

func (r *Consumer) bindAgain(ctx context.Context) error {
	if r.cfg.Durable != "" {
		return nil
	}
	stream, err := r.client.js.Stream(ctx, r.cfg.Stream)
	if err != nil {
		return err
	}
	r.consumer, err = bind(ctx, stream, r.cfg)
	return err
}
