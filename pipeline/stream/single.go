package stream

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// single publishes the entries one by one, pipelined, and returns those that
// failed for a passing reason.
func (b *batcher) single(ctx context.Context, batch []*entry) (open []*entry, reason error) {
	futures := make([]jetstream.PubAckFuture, len(batch))
	failed := make([]error, len(batch))
	for i, e := range batch {
		futures[i], failed[i] = b.client.js.PublishMsgAsync(e.message(), jetstream.WithStallWait(attemptTimeout))
	}
	for i, e := range batch {
		ack, err := await(ctx, futures[i], failed[i])
		switch err = classify(err); {
		case err == nil:
			e.resolve(Outcome{Sequence: ack.Sequence, Duplicate: ack.Duplicate})
		case errors.Is(err, ErrUnavailable) && RetryAfter(err) < retryLater:
			open, reason = append(open, e), err
		default:
			e.resolve(Outcome{Err: err})
		}
	}
	return open, reason
}

func await(ctx context.Context, future jetstream.PubAckFuture, failed error) (*jetstream.PubAck, error) {
	if failed != nil {
		return nil, failed
	}
	select {
	case ack := <-future.Ok():
		return ack, nil
	case err := <-future.Err():
		return nil, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// knowsBatches tells whether the server is new enough (2.12) for atomic batches;
// an older one would store their members one by one.
func (c *Client) knowsBatches() bool {
	parts := strings.SplitN(c.conn.ConnectedServerVersion(), ".", 3)
	if len(parts) < 2 {
		return false
	}
	major, err := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	return err == nil && err2 == nil && (major > 2 || major == 2 && minor >= 12)
}
