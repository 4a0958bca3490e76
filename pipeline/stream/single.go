package stream

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/plumbline/plumbline/pipeline/subject"
)

// single publishes the entries one by one, pipelined. It returns those that failed for a
// transient reason, and that reason.
func (b *batcher) single(ctx context.Context, batch []*entry) (open []*entry, reason error) {
	futures := make([]jetstream.PubAckFuture, len(batch))
	failed := make([]error, len(batch))
	for i, e := range batch {
		futures[i], failed[i] = b.client.js.PublishMsgAsync(e.message(), jetstream.WithStallWait(attemptTimeout))
	}
	for i, e := range batch {
		ack, err := await(ctx, futures[i], failed[i])
		if err == nil && ack.Duplicate && e.isTrace() {
			err = b.held(ctx, e, ack.Sequence)
		}
		switch err = classify(err); {
		case err == nil:
			e.resolve(Outcome{Sequence: ack.Sequence, Duplicate: ack.Duplicate})
		case errors.Is(err, errTaken):
			e.id = b.ids.Next()
			open, reason = append(open, e), err
		case errors.Is(err, ErrUnavailable) && RetryAfter(err) < retryLater:
			open, reason = append(open, e), err
		default:
			e.resolve(Outcome{Err: err})
		}
	}
	return open, reason
}

// errTaken means that the stream holds another message under the record's id.
var errTaken = errors.New("the message id is taken by another message")

// held returns nil if the stream holds the record at the sequence that the broker reports for its
// earlier copy. Anyone who may publish on NATS can use the id of a trace that another agent will
// publish, so the broker's report is not enough. In that case the record is published under an id
// that nobody can predict.
func (b *batcher) held(ctx context.Context, e *entry, sequence uint64) error {
	if b.traces == nil {
		traces, err := b.client.js.Stream(ctx, Traces)
		if err != nil {
			return err
		}
		b.traces = traces
	}
	stored, err := b.traces.GetMsg(ctx, sequence)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return errTaken // the message is gone, whatever it was
	case err != nil:
		return err
	}
	if _, token, err := subject.ParseStored(stored.Subject); err != nil || !e.of(token) || !bytes.Equal(stored.Data, e.data) {
		return errTaken
	}
	return nil
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

// knowsBatches reports whether the server is new enough (2.12) for atomic batches. An older
// server would store their members one by one.
func (c *Client) knowsBatches() bool {
	parts := strings.SplitN(c.conn.ConnectedServerVersion(), ".", 3)
	if len(parts) < 2 {
		return false
	}
	major, err := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	return err == nil && err2 == nil && (major > 2 || major == 2 && minor >= 12)
}
