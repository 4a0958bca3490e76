package stream

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/schema"
)

const (
	// maxHeaderBytes is more than the size of any header that this package writes.
	maxHeaderBytes = 512
	// maxBatch is the number of messages that the server accepts in one atomic batch.
	maxBatch = 1000
)

// CommitConfig limits the batches of a Committer. Zero values mean the defaults.
type CommitConfig struct {
	MaxMessages int           // of one batch; default 1,000, which is also the maximum
	MaxBytes    int           // of one batch; default 8 MiB
	Linger      time.Duration // how long a batch waits for more records; default 5 ms
}

func (c CommitConfig) complete() CommitConfig {
	if c.MaxMessages <= 0 || c.MaxMessages > maxBatch {
		c.MaxMessages = maxBatch
	}
	if c.MaxBytes <= 0 {
		c.MaxBytes = 8 << 20
	}
	if c.Linger <= 0 {
		c.Linger = 5 * time.Millisecond
	}
	return c
}

// Record is one trace that will be published.
type Record struct {
	Agent  string        // agent_id
	Data   []byte        // the trace's bytes; must not change until Publish returns
	Digest schema.Digest // SHA-256 of Data, the message's id
}

// Outcome is the result for one record.
type Outcome struct {
	Sequence  uint64 // in stream TRACES; 0 if the broker does not report it
	Duplicate bool   // the same bytes were already stored
	Err       error  // not stored: ErrTooLarge, ErrUnavailable or the broker's refusal
}

// Committer publishes traces durably. Records of concurrent callers share atomic batches, because
// the broker syncs its disk once for each batch. Batches are committed one at a time.
// Measurements showed that a second batch in flight gains nothing, and it would let an agent's
// traces overtake each other. So order is kept, within a call and from one call to the next. The
// only exception is a record that the broker rejected for a time: others may overtake it before
// it is repeated.
type Committer struct {
	client *Client
	cfg    CommitConfig
	queue  chan *request
	ready  chan []*entry
	quit   chan struct{}
	once   sync.Once
	ended  sync.WaitGroup
}

// commit commits the batches that gather sends. A batch holds records of many callers, so the
// context of a single caller does not end it.
func (m *Committer) commit() {
	b, seen := newBatcher(m.client), new(recent)
	for batch := range m.ready {
		fresh, known := seen.split(batch)
		for _, part := range [][]*entry{fresh, known} {
			if len(part) > 0 {
				b.commit(context.Background(), part)
				seen.forgetFailed(part)
			}
		}
	}
}

// request is one call of Publish.
type request struct {
	ctx      context.Context
	entries  []entry
	unsolved sync.WaitGroup
}

// ErrClosed is returned by Publish after Close.
var ErrClosed = errors.New("the committer is closed")

var errBusy = errors.New("too much waits to be committed")

// NewCommitter starts a committer. The caller must Close it.
func (c *Client) NewCommitter(cfg CommitConfig) *Committer {
	m := &Committer{
		client: c,
		cfg:    cfg.complete(),
		queue:  make(chan *request),
		ready:  make(chan []*entry),
		quit:   make(chan struct{}),
	}
	m.ended.Go(m.gather)
	m.ended.Go(m.commit)
	return m
}

// Publish returns when every record has its outcome. The error is the first ErrUnavailable among
// the outcomes, or the reason why the call ended early. In both cases it is safe to repeat the
// call: records that are already stored are reported as duplicates. A refusal of a single record
// appears only in its outcome.
func (m *Committer) Publish(ctx context.Context, records []Record) ([]Outcome, error) {
	if len(records) == 0 {
		return nil, nil
	}
	r := newRequest(ctx, records)
	patience := time.NewTimer(m.client.cfg.Timeout)
	defer patience.Stop()
	select {
	case m.queue <- r:
	case <-ctx.Done():
		return nil, &unavailable{cause: ctx.Err(), after: retrySoon}
	case <-patience.C:
		return nil, &unavailable{cause: errBusy, after: retrySoon}
	case <-m.quit:
		return nil, ErrClosed
	}
	r.unsolved.Wait()
	return r.outcomes()
}

func newRequest(ctx context.Context, records []Record) *request {
	r := &request{ctx: ctx, entries: make([]entry, len(records))}
	r.unsolved.Add(len(records))
	done := r.unsolved.Done
	var last, token string // neighbours often belong to one agent
	for i, record := range records {
		if i == 0 || record.Agent != last {
			last, token = record.Agent, subject.Trace(record.Agent)
		}
		r.entries[i] = entry{
			subject: token, id: record.Digest.String(), data: record.Data, ctx: ctx, done: done,
			fingerprint: binary.LittleEndian.Uint64(record.Digest[:]),
		}
	}
	return r
}

func (r *request) outcomes() ([]Outcome, error) {
	var first error
	outcomes := make([]Outcome, len(r.entries))
	for i := range r.entries {
		outcomes[i] = r.entries[i].outcome
		if first == nil && errors.Is(outcomes[i].Err, ErrUnavailable) {
			first = fmt.Errorf("publish: %w", outcomes[i].Err)
		}
	}
	return outcomes, first
}

// Close commits the accepted records and ends the committer.
func (m *Committer) Close() {
	m.once.Do(func() { close(m.quit) })
	m.ended.Wait()
}
