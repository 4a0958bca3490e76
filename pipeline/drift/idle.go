package drift

import (
	"context"
	"time"
)

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

// hurry makes the committer commit before its next tick.
func (s *stage) hurry() {
	select {
	case s.full <- struct{}{}:
	default:
	}
}
