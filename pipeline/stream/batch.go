package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
	"golang.org/x/mod/semver"
	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/wire"
)

// maxHeaderBytes is more than the size of any header of a trace.
const maxHeaderBytes = 512

// entry is one message that will be published.
type entry struct {
	wire.Message
	ctx     context.Context
	outcome Outcome
	done    func() // nil: nobody waits
	parent  string // header traceparent; empty: none

	fingerprint uint64 // of the id, for recent
	known       bool   // recent reports the id as probably stored, so the entry is sent alone
}

// size returns the number of bytes that count against a batch's limit.
func (e *entry) size() int { return len(e.Data) + len(e.Subject) + maxHeaderBytes }

func (e *entry) resolve(o Outcome) {
	e.outcome = o
	if e.done != nil {
		e.done()
	}
}

// assembly forms batches within limits and passes each one to flush when it is full.
type assembly struct {
	limits CommitConfig
	flush  func(batch []*entry) // keeps the slice
	batch  []*entry
	bytes  int
}

func (a *assembly) add(e *entry) {
	if len(a.batch) > 0 && a.bytes+e.size() > a.limits.MaxBytes {
		a.end()
	}
	a.batch, a.bytes = append(a.batch, e), a.bytes+e.size()
	if len(a.batch) >= a.limits.MaxMessages {
		a.end()
	}
}

func (a *assembly) end() {
	if len(a.batch) > 0 {
		a.flush(a.batch)
		a.begin()
	}
}

// begin begins a batch: the previous one belongs to who got it.
func (a *assembly) begin() { a.batch, a.bytes = make([]*entry, 0, cap(a.batch)), 0 }

// publish stores messages in few atomic batches, and returns their sequences when all of them are
// stored. The error is that of the first one, but a transient one takes precedence: the caller
// then tries again.
func (c *Client) publish(ctx context.Context, messages []wire.Message) (sequences []uint64, err error) {
	b := newBatcher(c)
	a := assembly{limits: CommitConfig{}.complete(), flush: func(batch []*entry) { b.commit(ctx, batch) }}
	entries := make([]entry, len(messages))
	for i, m := range messages {
		entries[i].Message = m
		a.add(&entries[i])
	}
	a.end()
	sequences = make([]uint64, len(entries))
	for i := range entries {
		failed := entries[i].outcome.Err
		if errors.Is(failed, ErrUnavailable) {
			return nil, failed
		}
		if err == nil {
			err = failed
		}
		sequences[i] = entries[i].outcome.Sequence
	}
	return sequences, err
}

// Headers of an atomic batch (NATS ADR-50).
const (
	headerBatchID     = "Nats-Batch-Id"
	headerBatchSeq    = "Nats-Batch-Sequence"
	headerBatchCommit = "Nats-Batch-Commit"
)

var commitValue = []string{"1"}

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
	parent         []string
}

func newBatcher(c *Client) *batcher {
	return &batcher{
		client: c, ids: nuid.New(), atomic: c.knowsBatches(),
		msg: nats.Msg{Header: nats.Header{}},
		id:  make([]string, 1), batch: make([]string, 1), seq: make([]string, 1), parent: make([]string, 1),
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
			for _, e := range batch {
				e.resolve(Outcome{Err: err})
			}
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
	last, err := b.whole(ctx, batch)
	if err == nil {
		first := last - uint64(len(batch)) + 1 // a batch is stored without gaps
		for i, e := range batch {
			e.resolve(Outcome{Sequence: first + uint64(i)})
		}
		return nil, nil
	}
	var api *jetstream.APIError
	noBatchFree := errors.As(err, &api) && api.ErrorCode == codeTooManyBatches
	err = classify(err)
	if errors.Is(err, ErrUnavailable) && RetryAfter(err) < retryLater && !noBatchFree {
		return batch, err
	}
	// The batch was refused because of something in it, such as a known id. Sent alone, each
	// member gets its own answer. Single publishes also work when other clients have begun as
	// many batches as the server holds.
	return b.single(ctx, batch)
}

var errNoBatches = errors.New("the server does not know atomic batches")

// whole publishes an atomic batch of two or more entries, and returns the sequence of the last
// one. The first message is a request, so a refusal is known before the rest is sent.
func (b *batcher) whole(ctx context.Context, batch []*entry) (last uint64, err error) {
	b.batch[0] = b.ids.Next()
	answer, err := b.client.conn.RequestMsgWithContext(ctx, b.message(batch[0], 1))
	if err != nil {
		return 0, err
	}
	if len(answer.Data) > 0 { // an error, or the ack of a server that does not support batches
		if _, err := parseAck(answer.Data); err != nil {
			return 0, err
		}
		b.atomic = false
		return 0, errNoBatches
	}
	for i := 1; i < len(batch)-1; i++ {
		if err := b.client.conn.PublishMsg(b.message(batch[i], i+1)); err != nil {
			return 0, err
		}
	}
	m := b.message(batch[len(batch)-1], len(batch))
	m.Header[headerBatchCommit] = commitValue
	if answer, err = b.client.conn.RequestMsgWithContext(ctx, m); err != nil {
		return 0, err
	}
	return parseAck(answer.Data)
}

func (b *batcher) message(e *entry, seq int) *nats.Msg {
	b.id[0], b.seq[0] = e.ID, strconv.Itoa(seq)
	b.msg.Subject, b.msg.Data = e.Subject, e.Data
	clear(b.msg.Header)
	maps.Copy(b.msg.Header, e.Header)
	b.msg.Header[jetstream.MsgIDHeader] = b.id
	b.msg.Header[headerBatchID] = b.batch
	b.msg.Header[headerBatchSeq] = b.seq
	if e.parent != "" {
		b.parent[0] = e.parent
		b.msg.Header[wire.HeaderTraceparent] = b.parent
	}
	return &b.msg
}

// parseAck returns the sequence in the server's answer to a publish.
func parseAck(data []byte) (sequence uint64, err error) {
	var ack struct {
		Error    *jetstream.APIError `json:"error"`
		Stream   string              `json:"stream"`
		Sequence uint64              `json:"seq"`
	}
	if err := json.Unmarshal(data, &ack); err != nil {
		return 0, fmt.Errorf("read the broker's answer %q: %w", data, err)
	}
	if ack.Error != nil {
		return 0, ack.Error
	}
	if ack.Stream == "" {
		return 0, fmt.Errorf("the broker's answer %q is no acknowledgement", data)
	}
	return ack.Sequence, nil
}

// single publishes the entries one by one, pipelined. It returns those that failed for a
// transient reason, and that reason.
func (b *batcher) single(ctx context.Context, batch []*entry) (open []*entry, reason error) {
	futures := make([]jetstream.PubAckFuture, len(batch))
	failed := make([]error, len(batch))
	for i, e := range batch {
		m := &nats.Msg{Subject: e.Subject, Data: e.Data, Header: nats.Header{jetstream.MsgIDHeader: {e.ID}}}
		maps.Copy(m.Header, e.Header)
		if e.parent != "" {
			m.Header[wire.HeaderTraceparent] = []string{e.parent}
		}
		futures[i], failed[i] = b.client.js.PublishMsgAsync(m, jetstream.WithStallWait(attemptTimeout))
	}
	for i, e := range batch {
		ack, err := await(ctx, futures[i], failed[i])
		if err == nil && ack.Duplicate && strings.HasPrefix(e.Subject, subject.Trace("")) {
			err = b.held(ctx, e, ack.Sequence)
		}
		switch err = classify(err); {
		case err == nil:
			e.resolve(Outcome{Sequence: ack.Sequence, Duplicate: ack.Duplicate})
		case errors.Is(err, errTaken):
			e.ID = b.ids.Next()
			open, reason = append(open, e), err
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

// errTaken means that the stream holds another message under the record's id.
var errTaken = errors.New("the message id is taken by another message")

// held returns nil if the stream holds the trace at the sequence that the broker reports for its
// earlier copy. The id of a trace is the SHA-256 of its data. Anyone who may publish on NATS can
// use the id of a trace that another agent will publish, so the broker's report is not enough. In
// that case the record is published under an id that nobody can predict.
func (b *batcher) held(ctx context.Context, e *entry, sequence uint64) error {
	if b.traces == nil {
		traces, err := b.client.js.Stream(ctx, Traces)
		if err != nil {
			return err
		}
		b.traces = traces
	}
	there, err := holds(ctx, b.traces, sequence, e.Subject, e.Data)
	if err == nil && !there {
		return errTaken // the message is gone, whatever it was, or it is another one
	}
	return err
}

// holds reports whether stream TRACES has a trace at a sequence: the same bytes, published on the
// same subject.
func holds(ctx context.Context, traces jetstream.Stream, sequence uint64, published string, data []byte) (bool, error) {
	stored, err := traces.GetMsg(ctx, sequence)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return false, nil
	case err != nil:
		return false, err
	}
	_, token, err := subject.ParseStored(stored.Subject)
	return err == nil && published == subject.Trace("")+token && bytes.Equal(stored.Data, data), nil
}

// holdsAtOnce is how many messages Held reads at a time.
const holdsAtOnce = 16

// Held reports for each record whether stream TRACES has it at the given sequence: the same bytes,
// published for the same agent. For sequence 0 it asks nothing. Records that it could not ask about
// before ctx ended are not held, and the error says why.
func (c *Client) Held(ctx context.Context, records []Record, sequences []uint64) ([]bool, error) {
	held := make([]bool, len(records))
	traces, err := c.js.Stream(ctx, Traces)
	if err != nil {
		return held, fmt.Errorf("open stream %s: %w", Traces, classify(err))
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(holdsAtOnce)
	for i, record := range records {
		if sequences[i] == 0 {
			continue
		}
		group.Go(func() (err error) {
			held[i], err = holds(ctx, traces, sequences[i], subject.Trace(record.Agent), record.Data)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return held, fmt.Errorf("read messages of stream %s: %w", Traces, classify(err))
	}
	return held, nil
}

// knowsBatches reports whether the server is new enough (2.12) for atomic batches. An older
// server would store their members one by one.
func (c *Client) knowsBatches() bool {
	version := semver.MajorMinor("v" + c.conn.ConnectedServerVersion())
	return semver.Compare(version, "v2.12") >= 0
}
