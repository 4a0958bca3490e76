package drift

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// Source reads the traces of the partitions that this process owns, in the order of the stream, without
// loss or repetition, and records how far they are done (ownership.Term).
type Source interface {
	Fetch(ctx context.Context, into []stream.Message, maxMessages, maxBytes int, wait time.Duration) ([]stream.Message, error)
	Seen() (sequence uint64, received time.Time)
	AtEnd(ctx context.Context) (end bool, now time.Time, err error)
	OneServerDates() bool
	StreamCreated() time.Time
	Owned() [subject.Partitions]bool
	Position() uint64
	Done(ctx context.Context, through uint64) error
}

// Messages are fetched in slices. What is fetched ahead stays far below the bytes for which a NATS
// server closes a connection (max_pending, 64 MiB).
const (
	sliceMessages = 1000
	sliceWait     = 100 * time.Millisecond
	leastWait     = 10 * time.Millisecond

	prefetchMessages = 8000
	prefetchBytes    = 16 << 20
)

// Rows has the rows of cards and of earlier results, and stores baselines, points, alerts and states durably (store.Store).
type Rows interface {
	CardFacts(ctx context.Context, agents []string) ([]store.CardFacts, error)
	DriftStates(ctx context.Context, streamCreated time.Time, series map[int][]store.SeriesKey) ([]store.DriftState, error)
	DriftStatesOf(ctx context.Context, streamCreated time.Time, agents map[int][]string) ([]store.DriftState, error)
	FirstMeasured(ctx context.Context, streamCreated time.Time, traces []store.TraceTime) (map[schema.Digest]uint64, error)
	InsertDriftBaselines(ctx context.Context, baselines []store.DriftBaseline) error
	InsertDriftPoints(ctx context.Context, points []store.DriftPoint) error
	InsertDriftAlerts(ctx context.Context, alerts []store.DriftAlert) error
	InsertLoopAlerts(ctx context.Context, alerts []store.LoopAlert) error
	InsertDriftStates(ctx context.Context, states []store.DriftState) error
}

// Outlet publishes alerts (stream.Client).
type Outlet interface {
	PublishAlerts(ctx context.Context, alerts []wire.Alert) error
}

// stage is the running stage: one goroutine folds the stream (follow), another stores what comes of it
// (commitAll). ADR 27 says why one reader serves all partitions, and why nothing is acked.
type stage struct {
	cfg      *Config
	env      *service.Env
	source   Source // of the current term
	rows     Rows
	outlet   Outlet
	registry Registry
	pins     Pins
	reducer  *reducer
	metrics  *metrics
	now      func() time.Time

	partitions [subject.Partitions]*partition
	owned      []*partition              // those of the current term
	unrecorded int                       // messages that were finished since the position was recorded last; the committer's
	full       chan struct{}             // receives a value when a partition has no more room
	taken      chan struct{}             // receives a value when room was made
	batch      batch                     // of the committer
	committing atomic.Pointer[time.Time] // when the oldest message of the current commit was received; nil without one
}

// partition is what is folded of one partition. The follower folds, the committer takes the output.
type partition struct {
	number  int
	entries []*entry // of the current slice

	mu   sync.Mutex
	fold *fold
	read uint64 // every message of the partition up to this sequence was folded
}

// build sets the parts that are made of the others.
func (s *stage) build() *stage {
	s.reducer, s.full, s.taken = newReducer(s.registry), make(chan struct{}, 1), make(chan struct{}, 1)
	for i := range s.partitions {
		s.partitions[i] = &partition{number: i}
	}
	s.forget(time.Time{}, 0)
	return s
}

// forget begins a fold of each partition, without any series, of the stream that was created at a time,
// and after a position.
func (s *stage) forget(created time.Time, position uint64) {
	for _, p := range s.partitions {
		p.mu.Lock()
		p.fold, p.read = newFold(p.number, created, &s.cfg.Rules, s.pins, s.registry.RetainUntil), position
		p.mu.Unlock()
		clear(p.entries) // a term may end before the slice that it was reading is folded
		p.entries = p.entries[:0]
	}
}

// run folds the partitions of a term until ctx ends. Then, within the drain budget, it stores what was
// applied. Traces that still wait are read again by their next owner. What the folds keep in memory is
// dropped: another process may apply the next traces.
func (s *stage) run(ctx context.Context) error {
	s.forget(s.source.StreamCreated(), s.source.Position())
	defer s.forget(time.Time{}, 0)
	s.owned, s.unrecorded = s.owned[:0], 0
	for number, owned := range s.source.Owned() {
		if owned {
			s.owned = append(s.owned, s.partitions[number])
		}
	}
	work, stop := s.env.Drain(ctx)
	defer stop()
	ended := make(chan struct{})
	return service.Group(work,
		func(work context.Context) error {
			defer close(ended)
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(work, cancel)()
			return s.follow(ctx)
		},
		func(work context.Context) error { return s.commitAll(work, ended) })
}

// follow folds the messages of the term until ctx ends. Each question to the broker or the database is
// repeated until it is answered.
func (s *stage) follow(ctx context.Context) error {
	r := &reading{stage: s, quiet: time.Now(), slack: clockSlack}
	if !s.source.OneServerDates() {
		r.slack = clusterSlack
	}
	for ctx.Err() == nil {
		if err := r.next(ctx); err != nil {
			return service.UnlessEnded(ctx, err)
		}
	}
	return nil
}

// reading is what follow knows about the messages that it has read.
type reading struct {
	*stage
	slack time.Duration

	inbox    []stream.Message
	doubtful []*entry  // entries of the slice that may be copies
	read     uint64    // the newest message, of any partition
	newest   time.Time // its broker time
	quiet    time.Time // when it arrived here
	caughtUp bool      // everything that the stream held when the term began has arrived
}

// next folds the next slice.
func (r *reading) next(ctx context.Context) error {
	clear(r.inbox)
	r.inbox = r.inbox[:0]
	err := r.env.Retry.Do(ctx, "fetch traces", func() (err error) { // no message is fetched twice
		r.inbox, err = r.source.Fetch(ctx, r.inbox, sliceMessages, prefetchBytes, r.patience())
		if len(r.inbox) > 0 {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	if sequence, received := r.source.Seen(); sequence == r.read || received.IsZero() {
		err = r.idle(ctx)
	} else {
		err = r.slice(ctx, sequence, received)
	}
	if err == nil {
		r.evict()
		r.awaitRoom(ctx)
	}
	return err
}

// evict removes what need not stay in memory. It also runs while nothing arrives, because large series leave then, too.
func (r *reading) evict() {
	for _, p := range r.owned {
		p.mu.Lock()
		p.fold.evict(int(r.cfg.ResidentBytes) / len(r.owned))
		p.mu.Unlock()
	}
}

// slice folds what was fetched, up to a message of any partition. Every partition learns from that how far
// the broker's time has come: what of it comes later is dated later.
func (r *reading) slice(ctx context.Context, last uint64, received time.Time) error {
	if err := r.reduce(ctx); err != nil {
		return err
	}
	if err := r.recall(ctx); err != nil {
		return err
	}
	if err := r.findCopies(ctx); err != nil {
		return err
	}
	for _, p := range r.owned {
		p.mu.Lock()
		for _, e := range p.entries {
			p.fold.receive(e)
		}
		p.fold.pass(received)
		p.read = last
		p.mu.Unlock()
		clear(p.entries)
		p.entries = p.entries[:0]
	}
	r.read, r.newest, r.quiet = last, received, time.Now()
	return nil
}

// reduce distributes the entries of the messages, without a lock: it may have to request a card.
func (r *reading) reduce(ctx context.Context) error {
	if agents := r.reducer.unread(stream.Agents(r.inbox)); len(agents) > 0 {
		var rows []store.CardFacts
		err := r.env.Retry.Do(ctx, "read the rows of agents' cards", func() (err error) {
			rows, err = r.rows.CardFacts(ctx, agents)
			return err
		})
		if err != nil {
			return err
		}
		r.reducer.learn(agents, rows)
	}
	for i := range r.inbox {
		m := &r.inbox[i]
		if m.Unrouted() && !r.source.Owned()[m.Partition] { // each owner gets it, and one counts it as refused
			r.owned[0].pass(m)
			continue
		}
		e, err := r.reducer.reduce(ctx, *m)
		if err != nil {
			err = r.env.Retry.Do(ctx, "look up the card of a trace", func() (err error) {
				e, err = r.reducer.reduce(ctx, *m)
				return err
			})
		}
		if err != nil {
			return err
		}
		p := r.partitions[m.Partition]
		p.entries = append(p.entries, e)
	}
	return nil
}

// pass finishes a message that no series is measured by.
func (p *partition) pass(m *stream.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fold.out.finish(m.Received)
}

// recall reads the states of the entries' series that are not in memory, and resumes them. They
// are read after the positions, so they list all messages before these. Only this goroutine adds
// series and evicts them. One query serves all partitions: for
// a hundred series it takes twice the time of one for a single series (store.TestRecallOfManyStates).
func (r *reading) recall(ctx context.Context) error {
	series, agents := map[int][]store.SeriesKey{}, map[int][]string{}
	for _, p := range r.owned {
		p.mu.Lock()
		keys, ended := p.fold.unknown(p.entries)
		p.mu.Unlock()
		if len(keys) > 0 {
			series[p.number] = keys
		}
		if len(ended) > 0 {
			agents[p.number] = ended
		}
	}
	created := r.source.StreamCreated()
	if len(series) > 0 {
		err := r.resume(ctx, func() ([]store.DriftState, error) { return r.rows.DriftStates(ctx, created, series) })
		if err != nil {
			return err
		}
	}
	if len(agents) > 0 {
		return r.resume(ctx, func() ([]store.DriftState, error) { return r.rows.DriftStatesOf(ctx, created, agents) })
	}
	return nil
}

func (r *reading) resume(ctx context.Context, read func() ([]store.DriftState, error)) error {
	var rows []store.DriftState
	err := r.env.Retry.Do(ctx, "read drift states", func() (err error) {
		rows, err = read()
		return err
	})
	if err != nil {
		return err
	}
	r.metrics.recalled.Add(float64(len(rows)))
	for i := range rows {
		p := r.partitions[rows[i].Partition]
		p.mu.Lock()
		err := p.fold.resume(rows[i : i+1])
		p.mu.Unlock()
		if err != nil {
			return service.Permanent(fmt.Errorf("partition %d, table drift_state: %w", p.number, err))
		}
	}
	return nil
}

// While nothing arrives, this process measures how long the stream has been quiet. It does not read
// the wall clock, which may be set. A message that comes later is dated at least as much later, less
// the slack: the difference of two servers' clocks where each, as the leader, dates messages, and
// otherwise what the clock of one server may be corrected by meanwhile. So a replay gives the same
// order.
const (
	clockSlack   = 100 * time.Millisecond
	clusterSlack = 5 * time.Second
)

// passed returns the broker's time, at least.
func (r *reading) passed() time.Time { return r.newest.Add(time.Since(r.quiet) - r.slack) }

// due returns when the first waiting trace becomes due; false if none waits.
func (r *reading) due() (first time.Time, waits bool) {
	for _, p := range r.owned {
		p.mu.Lock()
		at, waiting := p.fold.due()
		p.mu.Unlock()
		if waiting && (!waits || at.Before(first)) {
			first, waits = at, true
		}
	}
	return first, waits
}

// patience returns how long to wait for messages: once none came, not longer than until a trace is due.
func (r *reading) patience() time.Duration {
	first, waits := r.due()
	if !waits || len(r.inbox) > 0 {
		return sliceWait
	}
	return min(max(first.Sub(r.passed()), leastWait), sliceWait)
}

// idle makes traces due for which no newer message arrives. It first checks that everything that the
// stream held at the measurement has arrived.
func (r *reading) idle(ctx context.Context) error {
	passed := r.passed()
	first, waits := r.due()
	if !waits || r.caughtUp && first.After(passed) {
		return nil
	}
	var end bool
	var now time.Time
	err := r.env.Retry.Do(ctx, "ask whether all traces have arrived", func() (err error) {
		end, now, err = r.source.AtEnd(ctx)
		return err
	})
	if err != nil || !end {
		return err
	}
	if !r.caughtUp { // the waiting traces may have arrived long before the term began: the broker knows
		r.caughtUp = true
		if at := now.Add(-r.slack); at.After(passed) {
			passed = at
			r.newest, r.quiet = now, time.Now()
		}
	}
	for _, p := range r.owned {
		p.mu.Lock()
		p.fold.pass(passed)
		p.mu.Unlock()
	}
	return nil
}

// awaitRoom waits while a partition has as many finished messages as one insert takes, or more.
func (r *reading) awaitRoom(ctx context.Context) {
	for r.isFull() {
		select {
		case r.full <- struct{}{}: // commit before the next tick
		default:
		}
		select {
		case <-r.taken:
		case <-ctx.Done():
			return
		}
	}
}

func (s *stage) isFull() bool {
	for _, p := range s.owned {
		p.mu.Lock()
		full := p.fold.out.messages >= s.cfg.BatchRows
		p.mu.Unlock()
		if full {
			return true
		}
	}
	return false
}
