package bench

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/machine"
	"github.com/plumbline/plumbline/pipeline/limit"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/verifier"
)

// took holds the durations of a measurement, from the first publish.
type took struct {
	queryable time.Duration // every trace, with its verdict if a verifier runs
	sealed    time.Duration // every session in a signed bundle; all stages only
	watched   time.Duration // every trace applied by drift detection; all stages only
}

// Polling intervals. A slow condition is polled less often, because polling takes time from
// what is measured.
const (
	closely   = 5 * time.Millisecond
	leisurely = 50 * time.Millisecond
)

// measureFloor measures publishing and the floor's loop.
func measureFloor(ctx context.Context, cfg machine.Config, l *load) (t took, err error) {
	s, err := open(ctx, cfg, []string{})
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	rows, err := store.OpenFloor(ctx, store.Config{DSN: s.Machine.Engine().AdminDSN(), Stage: "bench"})
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	source, err := s.Broker.OpenConsumer(ctx, stream.ConsumerConfig{Stream: stream.Traces, Durable: stream.VerifierConsumer})
	if err != nil {
		return t, err
	}
	defer source.Close()
	stop := s.copyTo(ctx, source, rows)
	began := time.Now()
	if err := s.publish(ctx, l); err != nil {
		return t, errors.Join(err, stop())
	}
	if err := until(ctx, closely, s.Unjudged); err != nil {
		return t, errors.Join(err, stop())
	}
	t.queryable = time.Since(began)
	if err := stop(); err != nil {
		return t, err
	}
	n, err := rows.Rows(ctx)
	return t, errors.Join(err, expect("messages", n, len(l.records)))
}

// copyTo starts the floor's loop; stop ends it.
func (s *site) copyTo(ctx context.Context, source *stream.Consumer, rows *store.Floor) (stop func() error) {
	as := verifier.Default()
	loop := floor{source: source, rows: rows, limits: limit.Batch{Rows: as.BatchRows, Bytes: as.BatchBytes, Age: as.BatchAge}}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- loop.run(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}
}

// measureVerifier measures the same publishing with the verifier.
func measureVerifier(ctx context.Context, cfg machine.Config, l *load) (took, error) {
	return measure(ctx, cfg, l, []string{machine.Verifier}, func(s *site) (t took, err error) {
		began := time.Now()
		if err := s.publish(ctx, l); err != nil {
			return t, err
		}
		err = until(ctx, closely, s.Unjudged)
		return took{queryable: time.Since(began)}, err
	})
}

// measureAll measures publishing over HTTP with all stages.
func measureAll(ctx context.Context, cfg machine.Config, l *load) (took, error) {
	return measure(ctx, cfg, l, machine.Stages(), func(s *site) (t took, err error) {
		began := time.Now()
		if err := s.post(ctx, l); err != nil {
			return t, err
		}
		if err := until(ctx, closely, s.Unjudged); err != nil {
			return t, err
		}
		t.queryable = time.Since(began)
		err = s.awaitRest(ctx, began, &t)
		return t, err
	})
}

// measure runs one measurement on a machine with some of the stages, with the cards
// registered, and checks that all traces are there.
func measure(ctx context.Context, cfg machine.Config, l *load, stages []string, clock func(*site) (took, error)) (t took, err error) {
	s, err := open(ctx, cfg, stages)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.register(ctx, l.cards); err != nil {
		return t, err
	}
	if t, err = clock(s); err != nil {
		return t, err
	}
	return t, s.check(ctx, len(l.records))
}

// check compares the number of queryable rows with the number of traces.
func (s *site) check(ctx context.Context, traces int) error {
	c, err := s.counts(ctx)
	if err != nil {
		return err
	}
	return errors.Join(expect("traces", c.Traces, traces), expect("verdicts", c.Verdicts-c.CardUnknown, traces))
}

// awaitRest waits for the bundles and for drift detection, which holds the
// newest traces for some seconds in case earlier traces arrive late.
func (s *site) awaitRest(ctx context.Context, began time.Time, t *took) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		err := until(ctx, leisurely, s.OpenSessions)
		t.sealed = time.Since(began)
		return err
	})
	group.Go(func() error {
		err := until(ctx, leisurely, s.Unwatched)
		t.watched = time.Since(began)
		return err
	})
	return group.Wait()
}
