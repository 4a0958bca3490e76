package stream

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// maxBatch is the number of messages that the server accepts in one atomic batch.
const maxBatch = 1000

// CommitConfig limits the batches of a Committer. Zero values mean the defaults.
type CommitConfig struct {
	MaxMessages int           // of one batch; default 1,000, which is also the maximum
	MaxBytes    int           // of one batch; default 8 MiB
	Linger      time.Duration // how long a batch waits for more records; default 5 ms
	Pace        time.Duration // least time between two batches, unless the second is full; default 25 ms
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
	if c.Pace <= 0 {
		c.Pace = 25 * time.Millisecond
	}
	return c
}

// Record is one trace that will be published.
type Record struct {
	Agent  string        // agent_id
	Data   []byte        // the trace's bytes; must not change until Publish returns
	Digest schema.Digest // SHA-256 of Data, the message's id
	Parent string        // traceparent of the span in which it was published; empty: none
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

// ErrClosed is returned by Publish after Close.
var ErrClosed = errors.New("the committer is closed")

var errBusy = errors.New("too many records wait to be committed")

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

// Close commits the accepted records and ends the committer.
func (m *Committer) Close() {
	m.once.Do(func() { close(m.quit) })
	m.ended.Wait()
}

// request is one call of Publish.
type request struct {
	entries []entry
	open    sync.WaitGroup // of entries without an outcome
}

// Publish returns when every record has its outcome. The error is the first ErrUnavailable among
// the outcomes, or the reason why the call ended early. In both cases it is safe to repeat the
// call: records that are already stored are reported as duplicates. A refusal of a single record
// appears only in its outcome.
func (m *Committer) Publish(ctx context.Context, records []Record) ([]Outcome, error) {
	if len(records) == 0 {
		return nil, nil
	}
	r := &request{entries: make([]entry, len(records))}
	r.open.Add(len(records))
	done := r.open.Done
	var last, token string // neighbours often belong to one agent
	for i, record := range records {
		if i == 0 || record.Agent != last {
			last, token = record.Agent, subject.Trace(record.Agent)
		}
		r.entries[i] = entry{
			Message: wire.Message{Subject: token, ID: record.Digest.String(), Data: record.Data},
			ctx:     ctx, done: done,
			parent:      record.Parent,
			fingerprint: binary.LittleEndian.Uint64(record.Digest[:]),
		}
	}
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
	r.open.Wait()
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

// gather distributes the records of requests over batches until Close. A batch is due when it is full, or when
// its first record has waited for Linger and the previous batch is Pace old. While the previous batch is being
// committed, a batch that is due and not full takes more records: so few commits carry many small requests.
// The broker stages each batch in files of its own, which costs it more than the traces of a small post.
func (m *Committer) gather() {
	defer close(m.ready)
	linger := time.NewTimer(0)
	<-linger.C
	due := false
	var next time.Time // when a batch that is not full may be committed
	a := assembly{limits: m.cfg, flush: func(batch []*entry) { m.ready <- batch }}
	for {
		var ready chan<- []*entry
		if due {
			ready = m.ready
		}
		select {
		case r := <-m.queue:
			for i := range r.entries {
				e := &r.entries[i]
				if err := m.refusal(e); err != nil {
					e.resolve(Outcome{Err: err})
					continue
				}
				if a.add(e); len(a.batch) == 1 {
					linger.Reset(max(m.cfg.Linger, time.Until(next)))
				}
				due = due && len(a.batch) > 1 // it began with this record, or was full
			}
		case <-linger.C:
			due = len(a.batch) > 0
		case ready <- a.batch:
			a.begin()
			due, next = false, time.Now().Add(m.cfg.Pace)
		case <-m.quit:
			a.end()
			return
		}
	}
}

var errNoAgent = errors.New("a record without an agent cannot be published")

// refusal returns why a record need not be sent at all, or nil.
func (m *Committer) refusal(e *entry) error {
	limit := m.client.conn.MaxPayload()
	switch {
	case e.ctx.Err() != nil:
		return &unavailable{cause: e.ctx.Err(), after: retrySoon}
	case m.client.away():
		return &unavailable{cause: nats.ErrDisconnected, after: retrySoon}
	case e.Subject == subject.Trace(""):
		return errNoAgent
	case len(e.Subject) > subject.MaxBytes:
		return fmt.Errorf("%w: the subject of its agent has %d bytes, the limit is %d", ErrTooLarge, len(e.Subject), subject.MaxBytes)
	case limit > 0 && int64(len(e.Data)+maxHeaderBytes) > limit:
		return fmt.Errorf("%w: %d bytes and headers, the limit is %d", ErrTooLarge, len(e.Data), limit)
	}
	return nil
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

// recent remembers what a committer published last. The broker refuses a whole batch because of
// one known id, so a probably known record is sent without its neighbours. recent is only a
// guess, and it forgets: the broker decides.
type recent [1 << 16]uint64 // fingerprints, each at the index of its low bits

func (r *recent) place(e *entry) *uint64 { return &r[e.fingerprint%uint64(len(r))] }

// split divides a batch, in order, into entries that seem new and entries that seem known. It
// remembers the new ones.
func (r *recent) split(batch []*entry) (fresh, known []*entry) {
	fresh = batch[:0]
	for _, e := range batch {
		place := r.place(e)
		if e.known = *place == e.fingerprint; e.known {
			known = append(known, e)
			continue
		}
		*place = e.fingerprint
		fresh = append(fresh, e)
	}
	return fresh, known
}

// forgetFailed removes entries that were not stored.
func (r *recent) forgetFailed(batch []*entry) {
	for _, e := range batch {
		if place := r.place(e); e.outcome.Err != nil && *place == e.fingerprint {
			*place = 0
		}
	}
}
