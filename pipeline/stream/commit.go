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
	// maxHeaderBytes is above the size of any header written here.
	maxHeaderBytes = 512
	// maxBatch is how many messages the server takes in one atomic batch.
	maxBatch = 1000
)

// CommitConfig bounds the batches of a Committer; zero values are the defaults.
type CommitConfig struct {
	MaxMessages int           // of one batch; default 1,000, which is also the most
	MaxBytes    int           // of one batch; default 8 MiB
	Linger      time.Duration // how long a batch waits for company; default 5 ms
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

// Record is one trace to be published.
type Record struct {
	Agent  string        // agent_id
	Data   []byte        // the trace's bytes; must not change until Publish returns
	Digest schema.Digest // SHA-256 of Data, the message's id
}

// Outcome is what became of one record.
type Outcome struct {
	Sequence  uint64 // in stream TRACES; 0 where the broker does not tell
	Duplicate bool   // the same bytes were there already
	Err       error  // not stored: ErrTooLarge, ErrUnavailable or the broker's refusal
}

// Committer publishes traces durably. Records of concurrent callers share
// atomic batches, because the broker syncs its disk once for each. One batch
// follows the other: a second one in flight was measured to gain nothing, and
// would let an agent's traces overtake each other. So order is kept, within a
// call and from one call to the next; only a record that the broker pushed back
// may be overtaken before it is repeated.
type Committer struct {
	client *Client
	cfg    CommitConfig
	queue  chan *request
	ready  chan []*entry
	quit   chan struct{}
	once   sync.Once
	ended  sync.WaitGroup
}

// commit commits what gather hands over. Batches hold records of many callers:
// none of their contexts ends it.
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

// NewCommitter starts a committer; Close ends it.
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

// Publish returns when every record has its outcome. The error is the first
// ErrUnavailable among them, or why the call was cut short: then the same call
// again is right, and what was stored already comes back as a duplicate. A
// refusal that concerns one record alone stands only in its outcome.
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
	var last, token string // neighbours are often of one agent
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

// Close commits what was accepted and ends the committer.
func (m *Committer) Close() {
	m.once.Do(func() { close(m.quit) })
	m.ended.Wait()
}
