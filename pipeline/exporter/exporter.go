package exporter

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/aivs/redact"
	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/events"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/walk"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// Source reads the receipts of the partitions that this process owns, and records how far they are done
// (ownership.Term).
type Source interface {
	Fetch(ctx context.Context, into []stream.Message, maxMessages, maxBytes int, wait time.Duration) ([]stream.Message, error)
	Seen() (sequence uint64, received time.Time)
	Owned() [subject.Partitions]bool
	Position() uint64
	Confirm(ctx context.Context) error
	Done(ctx context.Context, through uint64) error
}

// Broker provides what the exporter reads from the broker and publishes (stream.Client).
type Broker interface {
	ConsumerProgress(ctx context.Context, stream, consumer string) (stream.Progress, error)
	StreamState(ctx context.Context, stream string) (stream.State, error)
	AppendLedger(ctx context.Context, events ...ledger.Event) error
	AnnounceBundle(data []byte) error
	PublishAlerts(ctx context.Context, alerts []wire.Alert) error
	Trace(ctx context.Context, sequence uint64) ([]byte, error)
}

// exporter is the running stage. One goroutine folds, and waits while groups of sessions are
// sealed concurrently. Several sessions of a group are processed at a time.
type exporter struct {
	env     *service.Env
	cfg     *Config
	source  Source // of the current term
	broker  Broker
	rows    Rows
	seals   Bucket
	cards   *cards.Registry
	key     ed25519.PrivateKey
	keyID   string
	noted   string // the key id in bucket seals, as this process has seen it last in this term
	shared  bool   // another exporter has had partitions since this process started
	signer  signer
	metrics *metrics
	clock   *clock

	directory string                                                                           // the ids of its directories (enter)
	keeper    atomic.Pointer[keeper]                                                           // nil: another process keeps
	request   func(ctx context.Context, question []byte, within time.Duration) ([]byte, error) // asks that one

	schedules    schedules
	rules        redact.Rules // optional rules of redaction
	keptReceipts int          // how many receipts of a session the index keeps
	index        *index
	folded       atomic.Uint64                                          // RECEIPTS sequence up to which everything is folded, and what was due is sealed
	savedAt      time.Time                                              // when the position was recorded
	receiptsFrom func(ctx context.Context, from uint64) (Reader, error) // stream RECEIPTS from a sequence on
	inbox        []stream.Message
	receipts     []schema.Receipt

	// mu guards the state that the groups of a round share, and the sessions of the index.
	mu     sync.Mutex
	names  map[string]store.SessionKey // plans' file names and their sessions
	behind bool                        // a session that was sealed goes on: its next part may be due already
}

const (
	fetchMessages = 1000
	fetchBytes    = 16 << 20

	checkpointEvery = 5 * time.Second

	// lanes is how many groups are sealed concurrently. While one waits for database, broker or
	// disk, another is composed.
	lanes = 3

	// holdFor is how long a session whose rows differ waits before they are compared again, since
	// they may be repaired.
	holdFor = time.Minute
)

// own seals the sessions of the partitions of a term, until ctx ends. The index is folded again from the
// recorded position.
func (e *exporter) own(ctx context.Context, source Source) error {
	e.begin(source)
	defer func() { // another process may seal the sessions now
		e.index = newIndex(e.keptReceipts)
		e.metrics.open.Set(0)
		e.metrics.holding.Set(0)
		e.folded.Store(nothing)
	}()
	return e.run(ctx)
}

func (e *exporter) begin(source Source) {
	e.source, e.index, e.savedAt, e.behind = source, newIndex(e.keptReceipts), time.Now(), false
	e.index.position = source.Position()
	e.noted = "" // another owner may have signed meanwhile, with the successor of this process's key
	e.shared = e.shared || source.Owned() != everyPartition
	e.folded.Store(e.index.position)
}

// run folds and seals until ctx ends. Rounds of sealing begin at intervals, so the sessions that
// become due meanwhile share its queries, inserts and disk syncs. It finishes the started groups within
// the drain budget. It reads RECEIPTS without acks: after a crash the fold restarts at the recorded position.
func (e *exporter) run(ctx context.Context) error {
	work, stop := e.env.Drain(ctx)
	defer stop()
	var next time.Time // when the next round begins
	for ctx.Err() == nil {
		if err := e.foldFor(ctx, max(time.Until(next), time.Millisecond)); err != nil {
			return service.UnlessEnded(ctx, err)
		}
		if time.Now().Before(next) {
			continue
		}
		began := time.Now()
		e.behind = false
		due, err := e.sealDue(ctx, work)
		if err != nil {
			return service.UnlessEnded(work, err)
		}
		next = began.Add(e.pause(due))
		e.metrics.open.Set(float64(len(e.index.sessions)))
		e.metrics.holding.Set(float64(e.index.held))
		e.metrics.folded.Set(float64(e.index.position))
		e.folded.Store(e.index.position)
		if time.Since(e.savedAt) >= checkpointEvery {
			if err := e.savePosition(work); err != nil {
				return err
			}
		}
	}
	return e.savePosition(work)
}

// A round costs nearly the same for one session and for many: its queries read whole granules of the
// tables, and each of its inserts makes a part. So after a round with few sessions, but some, the next
// one begins later.
const (
	fewSessions = groupSessions / 2
	fewPause    = 4 // times cfg.Every
)

// pause returns how long after the beginning of a round with so many due sessions the next one begins.
func (e *exporter) pause(due int) time.Duration {
	switch {
	case e.behind:
		return 0
	case 0 < due && due < fewSessions:
		return fewPause * e.cfg.Every
	}
	return e.cfg.Every
}

// nothing is where a process is that owns no partition.
const nothing = math.MaxUint64

// backlog returns the number of messages of RECEIPTS that are not folded, or that came after
// sessions that are due and not sealed. A process without partitions has none.
func (e *exporter) backlog() service.Consumer {
	return service.Consumer{Name: "exporter", Backlog: func(ctx context.Context) (uint64, error) {
		if e.folded.Load() == nothing {
			return 0, errors.New("this exporter owns no partition")
		}
		state, err := e.broker.StreamState(ctx, stream.Receipts)
		return state.Behind(e.folded.Load()), err
	}}
}

func (e *exporter) foldFor(ctx context.Context, wait time.Duration) error {
	return e.env.Retry.Do(ctx, "fetch receipts", func() error {
		if e.index.created.IsZero() { // what is folded may not name its stream
			state, err := e.broker.StreamState(ctx, stream.Traces)
			if err != nil {
				return err
			}
			e.index.created = state.Created
		}
		var err error
		e.inbox, err = e.source.Fetch(ctx, e.inbox[:0], fetchMessages, fetchBytes, wait)
		for i := range e.inbox {
			e.fold(&e.inbox[i])
		}
		// What other processes own counts, too: it shows how far the stream and the broker's time are.
		if sequence, received := e.source.Seen(); sequence > e.index.position {
			e.index.position, e.index.newest = sequence, received
		}
		clear(e.inbox) // otherwise the bytes of the largest fetch stay in memory while nothing arrives
		return err
	})
}

// fold folds one message. A message that cannot be parsed is a fault of a verifier: its traces
// are reported as rows without receipts.
func (e *exporter) fold(m *stream.Message) {
	if m.Sequence <= e.index.position {
		return
	}
	receipts, end, err := wire.DecodeReceipts(m.Data, e.receipts[:0])
	if err != nil {
		e.env.Log.Error("message of stream RECEIPTS cannot be decoded, skipped", "sequence", m.Sequence, "error", err)
		e.index.position = m.Sequence
		return
	}
	e.receipts = receipts
	e.index.fold(m, receipts, end)
	e.metrics.receipts.Add(float64(len(receipts)))
}

// sealDue seals every session that is due, and returns their number. It reads the verifier's ack floor first,
// and then folds all receipts that were written before it, so every receipt up to the floor is known. It
// seals groups of sessions concurrently. When ctx ends it starts no further group, and finishes
// the started ones within work.
func (e *exporter) sealDue(ctx, work context.Context) (due int, err error) {
	if err := e.renewKey(work); err != nil || len(e.index.sessions) == 0 {
		return 0, err
	}
	floor, err := e.horizon(work)
	if err != nil {
		return 0, err
	}
	if err := e.reread(work); err != nil {
		return 0, err
	}
	groups := e.due(floor)
	if len(groups) == 0 {
		return 0, nil
	}
	if err := e.noteSigner(work); err != nil {
		return 0, err
	}
	e.names = map[string]store.SessionKey{}
	running, work := errgroup.WithContext(work)
	running.SetLimit(lanes)
	for _, group := range groups {
		if ctx.Err() != nil {
			break
		}
		due += len(group)
		running.Go(func() error { return e.seal(work, group, floor) })
	}
	return due, running.Wait()
}

// horizon folds every receipt up to the verifier's ack floor on TRACES, and returns the floor.
func (e *exporter) horizon(ctx context.Context) (floor uint64, err error) {
	var last uint64
	e.index.settled = len(e.index.streams)
	err = e.env.Retry.Do(ctx, "read the verifier's progress", func() error {
		reached, states, err := walk.Verified(ctx, e.broker, stream.Traces, stream.Receipts)
		if err != nil {
			return err
		}
		traces, receipts := states[0], states[1]
		floor, e.index.created, last, e.index.asked = reached, traces.Created, receipts.LastSequence, receipts.Now
		return nil
	})
	for err == nil && e.index.position < last {
		err = e.foldFor(ctx, 20*time.Millisecond)
	}
	if err != nil {
		err = fmt.Errorf("find the sessions that may be sealed: %w", err)
	}
	return floor, err
}

// seal seals a group of sessions by the steps below, in this order. If a step fails the whole
// group starts again, until it succeeds or ctx ends. A session whose rows differ from its
// receipts is held. The process confirms that it owns the sessions before files are placed, and again
// before anything about them is published, including the transparency log.
//
// After a crash the next start folds the receipts again and finds the same sessions due. Before a
// plan is in the bucket nothing is durable, and a new plan is made. From then on the same plan is
// carried out again: each step finds its earlier result and changes nothing.
func (e *exporter) seal(ctx context.Context, group []*openSession, floor uint64) error {
	return e.env.Retry.Do(ctx, "seal sessions", func() error {
		var head *events.LogHead
		began := time.Now()
		jobs, err := e.plan(ctx, group, floor) // the existing plan, or a new one
		if err != nil || len(jobs) == 0 {
			return err
		}
		span := e.env.Spans.Begin("seal sessions", began)
		span.Number("plumbline.sessions", len(jobs))
		for _, step := range []struct {
			operation string
			do        func() error
		}{
			{"read traces", func() error { return e.readTraces(ctx, jobs) }},
			{"compare rows with receipts", func() error { return each(ctx, jobs, e.compare) }},
			{"make contents", func() error { return each(ctx, jobs, e.convert) }}, // of a bundle: add cards, redact, begin the verdict
			{"query other sessions", func() error { return e.ask(ctx, jobs) }},    // for the verdict
			{"confirm ownership", func() error { return e.source.Confirm(ctx) }},
			{"write plans and files", func() error { return e.commit(ctx, jobs) }}, // plans to the bucket, then files; a crash in between: the plan gives the same file
			{"confirm ownership", func() error { return e.source.Confirm(ctx) }},
			{"keep in log and copies", func() error { head, err = e.keep(ctx, jobs); return err }}, // a crash after it: they already have the same
			{"record", func() error { return e.record(ctx, jobs, head) }},                          // a crash after it: the same rows, alerts and events are written again, under the same ids
			{"finish", func() error { return e.finish(ctx, jobs) }},                                // a crash after it: nothing is left to do
		} {
			span.Step(step.operation)
			if err := step.do(); err != nil {
				span.End(err)
				return err
			}
		}
		span.End(nil)
		e.forget(jobs)
		return nil
	})
}

// forget removes sealed receipts from the index.
func (e *exporter) forget(jobs []*job) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, j := range jobs {
		s := j.session
		if j.bundle == nil && !j.repeated {
			if s.heldUntil.IsZero() {
				e.index.held++
			}
			s.heldUntil = time.Now().Add(holdFor)
			continue
		}
		if !j.repeated {
			e.metrics.sealed.WithLabelValues(j.part.Plan.Reason).Inc()
			e.metrics.traces.Add(float64(len(j.part.Traces)))
			if j.part.Verdict != nil {
				e.metrics.verdicts.WithLabelValues(string(j.part.Verdict.RecommendedAction)).Inc()
				for kind, n := range j.part.Verdict.FindingCounts {
					e.metrics.found.WithLabelValues(kind).Add(float64(n))
				}
			}
		}
		e.release(s, j.part.Plan.Cut)
	}
}

func (e *exporter) release(s *openSession, cut uint64) {
	s.compact(cut)
	if !s.heldUntil.IsZero() {
		e.index.held--
	}
	s.heldUntil, s.held, s.fixed = time.Time{}, "", false
	e.index.closeEmpty(s)
	e.behind = e.behind || e.index.sessions[streamKey{s.key, s.stream}] != nil
	for range e.index.others(s) {
		e.behind = true
	}
}
