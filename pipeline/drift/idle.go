package drift

import (
	"context"
	"time"
)

// idleSlack is how far the clocks of two servers of a cluster may differ before traces
// of an idle partition are applied earlier than in a replay: each server dates what it
// receives as the leader.
const idleSlack = 5 * time.Second

// idle makes traces due that no newer message makes due. It measures how long the partition is
// quiet, and does not read a wall clock, which may be set. Everything that the
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
	return len(p.fold.out.finished) >= p.stage.cfg.BatchRows
}

// hurry asks the committer not to wait for its tick.
func (s *stage) hurry() {
	select {
	case s.full <- struct{}{}:
	default:
	}
}
