package drift

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/wire"
)

// Source reads the traces of a partition (stream.Consumer).
type Source interface {
	Fetch(ctx context.Context, into []stream.Message, maxMessages, maxBytes int, wait time.Duration) ([]stream.Message, error)
	Progress(ctx context.Context) (stream.Progress, error)
	StreamCreated() time.Time
	Close()
}

// Messages are fetched in slices, and prefetched within bounds that sixteen partitions can afford
// together.
const (
	sliceMessages = 1000
	sliceWait     = 250 * time.Millisecond

	prefetchMessages = 2000
	prefetchBytes    = 4 << 20
)

// Rows stores baselines, points, alerts and states durably (store.Store).
type Rows interface {
	DriftStates(ctx context.Context, streamCreated time.Time, partition int, series []store.SeriesKey) ([]store.DriftState, error)
	DriftStatesOf(ctx context.Context, streamCreated time.Time, partition int, agents []string) ([]store.DriftState, error)
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

// stage is the running stage: a worker for each partition (follow) and one committer for all of
// them (commitAll), so ClickHouse gets few inserts.
type stage struct {
	cfg         *Config
	env         *service.Env
	open        func(ctx context.Context, partition int) (Source, error)
	rows        Rows
	outlet      Outlet
	acknowledge func(ctx context.Context, messages []stream.Message) error // stream.Acknowledge
	confirm     func(ctx context.Context) error                            // returns an error once another process has the lease (stream.Lease)
	registry    Registry
	pins        Pins
	metrics     *metrics
	now         func() time.Time

	partitions [subject.Partitions]*partition
	full       chan struct{}             // receives a value when a partition has no more room
	committing atomic.Pointer[time.Time] // when the oldest message of the current commit was received; nil without one
}

func (s *stage) newFold(partition int, created time.Time) *fold {
	return newFold(partition, created, &s.cfg.Rules, s.pins, s.registry.RetainUntil)
}

// run folds until ctx ends. Then, within the drain budget, it stores and acks what was applied.
// Traces that still wait are not acked and are redelivered.
func (s *stage) run(ctx context.Context) error {
	work, stop := s.env.Drain(ctx)
	defer stop()
	ended := make(chan struct{})
	return service.Group(work,
		func(work context.Context) error {
			defer close(ended)
			return s.follow(ctx, work)
		},
		func(work context.Context) error { return s.commitAll(work, ended) })
}

// follow runs the workers until ctx or work ends.
func (s *stage) follow(ctx, work context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(work, cancel)()
	workers := make([]func(context.Context) error, len(s.partitions))
	for i, p := range s.partitions {
		workers[i] = func(ctx context.Context) error {
			err := s.env.Retry.Keep(ctx, "follow a partition", func() error { return p.follow(ctx) })
			return service.UnlessEnded(ctx, err)
		}
	}
	return service.Group(ctx, workers...)
}

// partition is the worker of one partition. One goroutine folds (follow); the committer takes the
// output.
type partition struct {
	number  int
	stage   *stage
	reducer *reducer

	inbox    []stream.Message
	entries  []*entry
	delivery uint64    // delivery number of the newest message
	quiet    time.Time // when the last message arrived
	caughtUp bool      // everything that the stream held when the worker began has arrived

	mu    sync.Mutex
	fold  *fold
	taken chan struct{} // receives a value when room was made
}

func newPartition(s *stage, number int) *partition {
	return &partition{
		number:  number,
		stage:   s,
		reducer: newReducer(s.registry),
		fold:    s.newFold(number, time.Time{}),
		taken:   make(chan struct{}, 1),
	}
}

// follow folds the partition from the first message that is not acked, until ctx ends or a step
// fails. It is safe to retry: no message is acked unless a durable state lists it.
func (p *partition) follow(ctx context.Context) error {
	if err := p.stage.confirm(ctx); err != nil { // opening rewinds the consumer
		return service.UnlessEnded(ctx, err)
	}
	source, err := p.stage.open(ctx, p.number)
	if err != nil {
		return service.UnlessEnded(ctx, err)
	}
	defer source.Close()
	p.begin(source.StreamCreated())
	for ctx.Err() == nil {
		if err := p.next(ctx, source); err != nil {
			return service.UnlessEnded(ctx, err)
		}
	}
	return nil
}

// begin starts a fold without any series. The messages that the previous fold had not acked are
// redelivered.
func (p *partition) begin(created time.Time) {
	fresh := p.stage.newFold(p.number, created)
	p.mu.Lock()
	p.fold = fresh
	p.mu.Unlock()
	p.delivery, p.quiet, p.caughtUp = 0, time.Now(), false
}

func (p *partition) next(ctx context.Context, source Source) (err error) {
	clear(p.inbox)
	p.inbox, err = source.Fetch(ctx, p.inbox[:0], sliceMessages, prefetchBytes, sliceWait)
	if err != nil {
		return err
	}
	p.entries = p.entries[:0]
	know := func() error { return p.stage.registry.KnowAll(ctx, agentsOf(p.inbox)) }
	if err := p.stage.env.Retry.Do(ctx, "look up the cards of agents", know); err != nil {
		return err
	}
	for _, m := range p.inbox { // without the lock: it may have to request a card
		if m.Delivery != p.delivery+1 {
			return fmt.Errorf("partition %d: delivery %d follows %d: %w", p.number, m.Delivery, p.delivery, errGap)
		}
		p.delivery = m.Delivery
		e, err := p.reducer.reduce(ctx, m)
		if err != nil {
			return err
		}
		p.entries = append(p.entries, e)
	}
	if err := p.recall(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	for _, e := range p.entries {
		p.fold.receive(e)
	}
	p.fold.evict(int(p.stage.cfg.ResidentBytes / subject.Partitions))
	p.mu.Unlock()
	clear(p.entries)
	if len(p.inbox) > 0 {
		p.quiet = time.Now()
	} else if err := p.idle(ctx, source); err != nil {
		return err
	}
	p.awaitRoom(ctx)
	return nil
}

func agentsOf(inbox []stream.Message) iter.Seq[string] {
	return func(yield func(agentID string) bool) {
		for i := range inbox {
			if !yield(inbox[i].Agent) {
				return
			}
		}
	}
}

// recall reads the states of the entries' series that are not in memory, and resumes them. They
// are read after the consumer was rewound, so they list all messages that it does not redeliver.
// Only this goroutine adds series and evicts them.
func (p *partition) recall(ctx context.Context) error {
	p.mu.Lock()
	keys, agents := p.fold.unknown(p.entries)
	created := p.fold.created
	p.mu.Unlock()
	for _, read := range []struct {
		wanted int
		rows   func() ([]store.DriftState, error)
	}{
		{len(keys), func() ([]store.DriftState, error) { return p.stage.rows.DriftStates(ctx, created, p.number, keys) }},
		{len(agents), func() ([]store.DriftState, error) { return p.stage.rows.DriftStatesOf(ctx, created, p.number, agents) }},
	} {
		if read.wanted == 0 {
			continue
		}
		var rows []store.DriftState
		err := p.stage.env.Retry.Do(ctx, "read drift states", func() (err error) {
			rows, err = read.rows()
			return err
		})
		if err != nil {
			return err
		}
		p.stage.metrics.recalled.Add(float64(len(rows)))
		if err := p.resume(rows); err != nil {
			return err
		}
	}
	return nil
}

func (p *partition) resume(rows []store.DriftState) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.fold.resume(rows); err != nil {
		return service.Permanent(fmt.Errorf("partition %d, table drift_state: %w", p.number, err))
	}
	return nil
}

// errGap says that messages are missing between two deliveries. They would come later, out of
// order, so the partition is read again.
var errGap = errors.New("deliveries are missing: they got lost on the way, another process reads the partition too, " +
	"or the broker cannot rewind a consumer (nats-server 2.14 or newer can)")

// idleSlack is the largest difference between the clocks of two servers of a cluster at which an
// idle partition still gives the same order as a replay. Each server, as the leader, dates the
// messages that it receives.
const idleSlack = 5 * time.Second

// idle makes traces due for which no newer message arrives. It measures how long the partition
// has been quiet, and does not read the wall clock, which may be set. It first checks that
// everything that the stream held at the measurement has arrived.
func (p *partition) idle(ctx context.Context, source Source) error {
	quiet := time.Since(p.quiet) - idleSlack
	p.mu.Lock()
	due, newest := p.fold.dueAfter(quiet), p.fold.newest()
	p.mu.Unlock()
	if !due && (p.caughtUp || newest.IsZero()) {
		return nil
	}
	progress, err := source.Progress(ctx)
	if err != nil {
		return err
	}
	if progress.Pending > 0 || progress.Deliveries > p.delivery {
		return nil
	}
	if !p.caughtUp { // the waiting traces may have arrived long before the worker began: the broker knows
		p.caughtUp = true
		quiet = max(quiet, max(progress.Now.Sub(newest), 0)-idleSlack)
		p.quiet = time.Now().Add(-quiet - idleSlack)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fold.idle(quiet)
	return nil
}

// awaitRoom waits while the partition has as many finished messages as one insert takes, or more.
func (p *partition) awaitRoom(ctx context.Context) {
	for {
		p.mu.Lock()
		full := len(p.fold.out.finished) >= p.stage.cfg.BatchRows
		p.mu.Unlock()
		if !full {
			return
		}
		select {
		case p.stage.full <- struct{}{}: // commit before the next tick
		default:
		}
		select {
		case <-p.taken:
		case <-ctx.Done():
			return
		}
	}
}

func (p *partition) take(b *batch) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	own, err := p.fold.take()
	if err != nil {
		return fmt.Errorf("partition %d: %w", p.number, err)
	}
	b.add(&own)
	select {
	case p.taken <- struct{}{}:
	default:
	}
	return nil
}

// stored records that what was taken last is durable. If the fold has been replaced meanwhile, the
// new one waits for nothing.
func (p *partition) stored() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fold.stored()
}

// commitAll commits at every tick, and once more after the workers have ended.
func (s *stage) commitAll(work context.Context, ended <-chan struct{}) error {
	tick := time.NewTicker(s.cfg.BatchAge)
	defer tick.Stop()
	for last := false; !last; {
		select {
		case <-tick.C:
		case <-s.full:
		case <-ended:
			last = true
		case <-work.Done():
			return work.Err()
		}
		var b batch
		for _, p := range s.partitions {
			if err := p.take(&b); err != nil {
				return err
			}
		}
		if err := s.commit(work, &b); err != nil {
			return err
		}
		for _, p := range s.partitions {
			p.stored()
		}
	}
	return nil
}

// commit makes a batch durable and then acks its messages. The order of the steps is the
// guarantee: a row refers only to what was stored before it. Each step is repeated until it
// succeeds or ctx ends. The lease is confirmed before the first step and after the last. After a
// crash the states list what was applied; messages that they do not list are redelivered, and
// give the same rows under the same ids.
func (s *stage) commit(ctx context.Context, b *batch) error {
	if len(b.finished) == 0 {
		return nil
	}
	release := stream.Hold(ctx, b.finished, func(err error) {
		s.env.Log.Warn("cannot extend the ack wait of a batch; its messages may be redelivered", "error", err)
	})
	defer release()
	oldest := slices.MinFunc(b.finished, func(a, b stream.Message) int { return a.Received.Compare(b.Received) }).Received
	s.committing.Store(&oldest)
	defer s.committing.Store(nil)
	confirm := func() error { return s.confirm(ctx) }
	for _, step := range []struct {
		operation string
		do        func() error
	}{
		{"confirm the lease", confirm},
		{"insert drift baselines", func() error { return s.rows.InsertDriftBaselines(ctx, b.baselines) }}, // after a crash the same rows again
		{"insert drift points", func() error { return s.rows.InsertDriftPoints(ctx, b.points) }},          // after a crash the same rows again
		{"insert drift alerts", func() error { return s.rows.InsertDriftAlerts(ctx, b.alerts) }},          // after a crash the same rows again
		{"insert loops", func() error { return s.rows.InsertLoopAlerts(ctx, b.loops) }},                   // after a crash the same rows again
		{"publish drift alerts", func() error { return publishAlerts(ctx, s.outlet, b.alerts) }},          // after a crash the same alerts again, under the same ids
		{"publish loops", func() error { return publishLoops(ctx, s.outlet, b.loops) }},                   // after a crash the same alerts again, under the same ids
		{"insert drift states", func() error { return s.rows.InsertDriftStates(ctx, b.states) }},          // after a crash the messages are redelivered: the states list them
		{"confirm the lease", confirm}, // without the lease another process may have read the messages that are acked here
	} {
		if err := s.env.Retry.Do(ctx, step.operation, step.do); err != nil {
			return err
		}
	}
	// One attempt is enough: the states list these messages, and one that is redelivered is acked
	// again.
	if err := s.acknowledge(ctx, b.finished); err != nil {
		s.env.Log.Warn("cannot acknowledge traces that are measured and stored; the broker may redeliver them", "error", err)
	}
	s.metrics.committed(b)
	return nil
}

func publishAlerts(ctx context.Context, outlet Outlet, alerts []store.DriftAlert) error {
	if len(alerts) == 0 {
		return nil
	}
	messages := make([]wire.Alert, len(alerts))
	for i := range alerts {
		alert := &alerts[i].DriftAlert
		data, err := json.Marshal(alert)
		if err != nil {
			return fmt.Errorf("encode drift alert %s: %w", wire.DriftAlertID(alert), err)
		}
		messages[i] = wire.Alert{Kind: subject.AlertDrift, Agent: alert.AgentID, ID: wire.DriftAlertID(alert), Data: data}
	}
	return outlet.PublishAlerts(ctx, messages)
}
