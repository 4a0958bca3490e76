package drift

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/plumbline/plumbline/pipeline/run"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// Source is where the traces of a partition come from (stream.Consumer).
type Source interface {
	Fetch(ctx context.Context, into []stream.Message, maxMessages, maxBytes int, wait time.Duration) ([]stream.Message, error)
	Progress(ctx context.Context) (stream.Progress, error)
	StreamCreated() time.Time
	Close()
}

// Messages are fetched in slices, and fetched ahead in bounds that sixteen
// partitions can afford together.
const (
	sliceMessages = 1000
	sliceWait     = 250 * time.Millisecond

	prefetchMessages = 2000
	prefetchBytes    = 4 << 20
)

// idleSlack is how far the clocks of two servers of a cluster may differ before traces
// of an idle partition are applied earlier than in a replay: each server dates what it
// receives as the leader.
const idleSlack = 5 * time.Second

// partition is the worker of one partition: one goroutine folds (follow), and
// whoever stores takes from it.
type partition struct {
	number  int
	stage   *stage
	reducer *reducer

	inbox    []stream.Message
	entries  []*entry
	delivery uint64    // of the newest message
	quiet    time.Time // since when nothing came
	caughtUp bool      // everything came that was there when the worker began

	mu    sync.Mutex
	fold  *fold
	taken chan struct{} // room has been made
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

// follow folds the partition from the acknowledged messages on, until ctx ends
// or something goes wrong; then the same again is right, for nothing is
// acknowledged that a durable state does not name.
func (p *partition) follow(ctx context.Context) error {
	if err := p.stage.confirm(ctx); err != nil { // opening rewinds the consumer
		return run.UnlessEnded(ctx, err)
	}
	source, err := p.stage.open(ctx, p.number)
	if err != nil {
		return run.UnlessEnded(ctx, err)
	}
	defer source.Close()
	// Only now: what is acknowledged before the consumer is rewound must be named
	// by the states.
	if err := p.begin(ctx, source.StreamCreated()); err != nil {
		return run.UnlessEnded(ctx, err)
	}
	for ctx.Err() == nil {
		if err := p.next(ctx, source); err != nil {
			return run.UnlessEnded(ctx, err)
		}
	}
	return nil
}

// begin starts a fold from the stored states; what the one before it had in hand
// comes again.
func (p *partition) begin(ctx context.Context, created time.Time) error {
	rows, err := p.stage.rows.DriftStates(ctx, created, p.number)
	if err != nil {
		return err
	}
	fresh := p.stage.newFold(p.number, created)
	if err := fresh.resume(rows); err != nil {
		return run.Permanent(fmt.Errorf("partition %d, table drift_state: %w", p.number, err))
	}
	p.mu.Lock()
	p.fold = fresh
	p.mu.Unlock()
	p.delivery, p.quiet, p.caughtUp = 0, time.Now(), false
	return nil
}

// next folds what has come.
func (p *partition) next(ctx context.Context, source Source) (err error) {
	clear(p.inbox)
	p.inbox, err = source.Fetch(ctx, p.inbox[:0], sliceMessages, prefetchBytes, sliceWait)
	if err != nil {
		return err
	}
	if err := p.reduce(ctx); err != nil {
		return err
	}
	p.receive()
	if len(p.inbox) > 0 {
		p.quiet = time.Now()
	} else if err := p.idle(ctx, source); err != nil {
		return err
	}
	p.awaitRoom(ctx)
	return nil
}

// errGap says that messages are missing between two deliveries: they would come
// later, out of order, so the partition is read again.
var errGap = errors.New("deliveries are missing: they got lost on the way, another process reads the partition too, " +
	"or the broker cannot rewind a consumer (nats-server 2.14 or newer can)")

// reduce makes the entries of the inbox, without the lock: a card may have to be
// asked for.
func (p *partition) reduce(ctx context.Context) error {
	p.entries = p.entries[:0]
	for _, m := range p.inbox {
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
	return nil
}

func (p *partition) receive() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.entries {
		p.fold.receive(e)
	}
	clear(p.entries)
}

// idle lets traces come due that no newer message makes due. How long the partition is
// quiet is measured, not read off a wall clock, which may be set. Everything that the
// stream held at the measurement must have come.
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
	if !p.caughtUp { // what waits may have come long before the worker began: the broker knows
		p.caughtUp = true
		quiet = max(quiet, max(progress.Now.Sub(newest), 0)-idleSlack)
		p.quiet = time.Now().Add(-quiet - idleSlack)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fold.idle(quiet)
	return nil
}

// awaitRoom waits while more is in hand than one insert takes.
func (p *partition) awaitRoom(ctx context.Context) {
	for p.full() {
		p.stage.hurry()
		select {
		case <-p.taken:
		case <-ctx.Done():
			return
		}
	}
}

func (p *partition) full() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.fold.out.settled) >= p.stage.cfg.BatchRows
}

// take adds what the fold has brought forth to y.
func (p *partition) take(y *yield) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	own, err := p.fold.take()
	if err != nil {
		return fmt.Errorf("partition %d: %w", p.number, err)
	}
	y.join(&own)
	select {
	case p.taken <- struct{}{}:
	default:
	}
	return nil
}

// waiting returns how many traces wait, and when the oldest message in hand was
// received.
func (p *partition) waiting() (traces int, oldest time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fold.queue.waiting, p.fold.oldest()
}
