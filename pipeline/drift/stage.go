package drift

import (
	"context"
	"time"

	"github.com/plumbline/plumbline/pipeline/run"
	"github.com/plumbline/plumbline/pipeline/subject"
)

// stage is the running stage: a worker for each partition, and one committer for
// all of them, so that ClickHouse gets few inserts.
type stage struct {
	cfg         *Config
	env         *run.Env
	open        func(ctx context.Context, partition int) (Source, error)
	rows        Rows
	outlet      Outlet
	acknowledge Acknowledge
	confirm     func(ctx context.Context) error // fails once another process has the lease (stream.Lease)
	registry    Registry
	pins        Pins
	metrics     *metrics
	now         func() time.Time

	partitions [subject.Partitions]*partition
	full       chan struct{} // a partition has no more room
}

func (s *stage) newFold(partition int, created time.Time) *fold {
	return newFold(partition, created, &s.cfg.Rules, s.pins, s.registry.RetainUntil)
}

// run folds until ctx ends, then stores and acknowledges what is applied within
// the drain budget. What still waits is not acknowledged and comes again.
func (s *stage) run(ctx context.Context) error {
	work, stop := s.env.Drain(ctx)
	defer stop()
	ended := make(chan struct{})
	return run.Group(work,
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
			return run.UnlessEnded(ctx, err)
		}
	}
	return run.Group(ctx, workers...)
}

// commitAll commits at every tick, and once more when the workers have ended.
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
		if err := s.commitOnce(work); err != nil {
			return err
		}
	}
	return nil
}

// commitOnce commits what all partitions have brought forth.
func (s *stage) commitOnce(ctx context.Context) error {
	s.observe()
	var y yield
	for _, p := range s.partitions {
		if err := p.take(&y); err != nil {
			return err
		}
	}
	return s.commit(ctx, &y)
}

// observe tells the gauges how much is in hand.
func (s *stage) observe() {
	traces, oldest := 0, s.now()
	for _, p := range s.partitions {
		n, at := p.waiting()
		traces += n
		if !at.IsZero() && at.Before(oldest) {
			oldest = at
		}
	}
	s.metrics.waiting.Set(float64(traces))
	s.metrics.lag.Set(s.now().Sub(oldest).Seconds())
}

// hurry asks the committer not to wait for its tick.
func (s *stage) hurry() {
	select {
	case s.full <- struct{}{}:
	default:
	}
}
