package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

// Headers of an atomic batch (NATS ADR-50).
const (
	headerBatchID     = "Nats-Batch-Id"
	headerBatchSeq    = "Nats-Batch-Sequence"
	headerBatchCommit = "Nats-Batch-Commit"
)

// attemptTimeout limits one attempt. Config.Timeout limits all attempts together.
const attemptTimeout = 5 * time.Second

// batcher commits one batch after another. Only one goroutine uses it.
type batcher struct {
	client *Client
	ids    *nuid.NUID
	atomic bool
	traces jetstream.Stream // nil until it is needed

	// One message and its header values, overwritten for each publish: the client copies them
	// into its buffer.
	msg            nats.Msg
	id, batch, seq []string
}

func newBatcher(c *Client) *batcher {
	return &batcher{
		client: c, ids: nuid.New(), atomic: c.knowsBatches(),
		msg: nats.Msg{Header: nats.Header{}},
		id:  make([]string, 1), batch: make([]string, 1), seq: make([]string, 1),
	}
}

// commit resolves every entry of the batch. It repeats what fails for a transient reason, under
// the same message ids, until Config.Timeout is over.
func (b *batcher) commit(ctx context.Context, batch []*entry) {
	ctx, cancel := context.WithTimeout(ctx, b.client.cfg.Timeout)
	defer cancel()
	pause := backoff.NewExponentialBackOff(backoff.WithInitialInterval(20*time.Millisecond),
		backoff.WithMaxInterval(time.Second), backoff.WithMaxElapsedTime(0))
	for {
		var err error
		if batch, err = b.attempt(ctx, batch); err == nil {
			return
		}
		select {
		case <-time.After(pause.NextBackOff()):
		case <-ctx.Done():
			resolveAll(batch, err)
			return
		}
	}
}

// attempt makes one attempt. It returns the entries that are still open, and the transient
// reason.
func (b *batcher) attempt(ctx context.Context, batch []*entry) ([]*entry, error) {
	ctx, cancel := b.client.within(ctx, attemptTimeout)
	defer cancel()
	if !b.atomic || len(batch) == 1 || batch[0].known {
		return b.single(ctx, batch)
	}
	ack, err := b.whole(ctx, batch)
	if err == nil {
		resolveBatch(batch, ack)
		return nil, nil
	}
	err = classify(err)
	if errors.Is(err, ErrUnavailable) && RetryAfter(err) < retryLater && !noBatchFree(err) {
		return batch, err
	}
	// The batch was refused because of something in it, such as a known id. Sent alone, each
	// member gets its own answer. Single publishes also work when other clients have begun as
	// many batches as the server holds.
	return b.single(ctx, batch)
}

// whole publishes an atomic batch of two or more entries. The first message is a request, so a
// refusal is known before the rest is sent.
func (b *batcher) whole(ctx context.Context, batch []*entry) (*pubAck, error) {
	b.batch[0] = b.ids.Next()
	answer, err := b.client.conn.RequestMsgWithContext(ctx, b.message(batch[0], 1))
	if err != nil {
		return nil, err
	}
	if len(answer.Data) > 0 {
		return nil, b.refused(answer.Data)
	}
	last := len(batch) - 1
	for i := 1; i < last; i++ {
		if err := b.client.conn.PublishMsg(b.message(batch[i], i+1)); err != nil {
			return nil, err
		}
	}
	m := b.message(batch[last], last+1)
	m.Header[headerBatchCommit] = commitValue
	if answer, err = b.client.conn.RequestMsgWithContext(ctx, m); err != nil {
		return nil, err
	}
	return parseAck(answer.Data)
}

// noBatchFree reports whether the server accepts no further batch for now.
func noBatchFree(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == codeTooManyBatches
}

var (
	commitValue  = []string{"1"}
	errNoBatches = errors.New("the server does not know atomic batches")
)

// refused parses the answer to a batch's first message. The answer is an error, or the ack of a
// server that does not support batches.
func (b *batcher) refused(answer []byte) error {
	if _, err := parseAck(answer); err != nil {
		return err
	}
	b.atomic = false
	return errNoBatches
}

func (b *batcher) message(e *entry, seq int) *nats.Msg {
	b.id[0], b.seq[0] = e.id, strconv.Itoa(seq)
	b.msg.Subject, b.msg.Data = e.subject, e.data
	clear(b.msg.Header)
	maps.Copy(b.msg.Header, e.header)
	b.msg.Header[jetstream.MsgIDHeader] = b.id
	b.msg.Header[headerBatchID] = b.batch
	b.msg.Header[headerBatchSeq] = b.seq
	return &b.msg
}

// pubAck is the server's answer to a publish.
type pubAck struct {
	Error     *jetstream.APIError `json:"error"`
	Stream    string              `json:"stream"`
	Sequence  uint64              `json:"seq"`
	Duplicate bool                `json:"duplicate"`
	Count     int                 `json:"count"`
}

func parseAck(data []byte) (*pubAck, error) {
	var ack pubAck
	if err := json.Unmarshal(data, &ack); err != nil {
		return nil, fmt.Errorf("read the broker's answer %q: %w", data, err)
	}
	if ack.Error != nil {
		return nil, ack.Error
	}
	if ack.Stream == "" {
		return nil, fmt.Errorf("the broker's answer %q is no acknowledgement", data)
	}
	return &ack, nil
}

// apiError returns the error in an answer of the server's API, if there is one.
func apiError(data []byte) error {
	var answer struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return fmt.Errorf("read the broker's answer %q: %w", data, err)
	}
	if answer.Error != nil {
		return answer.Error
	}
	return nil
}

// resolveBatch computes the sequence of each entry from that of the last one: a batch is stored
// without gaps.
func resolveBatch(batch []*entry, ack *pubAck) {
	first := ack.Sequence - uint64(len(batch)) + 1
	for i, e := range batch {
		e.resolve(Outcome{Sequence: first + uint64(i)})
	}
}

func resolveAll(batch []*entry, err error) {
	for _, e := range batch {
		e.resolve(Outcome{Err: err})
	}
}
