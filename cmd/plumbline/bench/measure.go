package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/client"
	"github.com/plumbline/plumbline/machine"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/verifier"
)

// took holds the durations of a measurement, from the first publish.
type took struct {
	queryable time.Duration // every trace, with its verdict if a verifier runs
	sealed    time.Duration // every session in a signed bundle; all stages only
	measured  time.Duration // every trace applied by drift detection; all stages only
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
	as := verifier.Default()
	loop := floor{source: source, rows: rows, as: &as}
	copying, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- loop.run(copying) }()
	stop := func() error {
		cancel()
		return <-ended
	}
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
		// Drift detection holds the newest traces for some seconds in case earlier traces arrive late.
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error {
			err := until(ctx, leisurely, s.OpenSessions)
			t.sealed = time.Since(began)
			return err
		})
		group.Go(func() error {
			err := until(ctx, leisurely, s.Unmeasured)
			t.measured = time.Since(began)
			return err
		})
		err = group.Wait()
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
	registry, err := cards.Open(ctx, s.Broker, 0)
	if err != nil {
		return t, err
	}
	for _, card := range l.cards {
		if _, _, err := registry.Put(ctx, card); err != nil {
			return t, err
		}
	}
	if t, err = clock(s); err != nil {
		return t, err
	}
	rows, err := store.Open(ctx, store.Config{DSN: s.Machine.Endpoints().ClickHouseDSN, Stage: "bench"})
	if err != nil {
		return t, err
	}
	c, err := rows.Counts(ctx)
	if err == nil {
		err = errors.Join(expect("traces", c.Traces, len(l.records)), expect("verdicts", c.Verdicts-c.CardUnknown, len(l.records)))
	}
	return t, errors.Join(err, rows.Close())
}

// expect returns an error unless as many rows are there as were published.
func expect(what string, got uint64, want int) error {
	if got != uint64(want) {
		return fmt.Errorf("%d %s are queryable, want %d", got, what, want)
	}
	return nil
}

// site is a machine on an empty data directory, and a connection to its broker.
type site struct {
	machine.Progress
	dir string
}

// open starts a machine with some of the stages.
func open(ctx context.Context, cfg machine.Config, stages []string) (s *site, err error) {
	s = new(site)
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.dir, err = os.MkdirTemp("", "plumbline-bench-"); err != nil {
		return s, err
	}
	cfg.DataDir, cfg.Listen, cfg.Stages = s.dir, "127.0.0.1:0", stages
	if s.Machine, err = machine.Start(ctx, cfg); err != nil {
		return s, err
	}
	at := s.Machine.Endpoints()
	if s.Broker, err = stream.Connect(ctx, stream.Config{URL: at.NATSURL, MonitorURL: at.NATSMonitorURL, Name: "bench"}); err != nil {
		return s, err
	}
	return s, s.Broker.EnsureTopology(ctx)
}

// close stops the machine and removes its data.
func (s *site) close() error {
	var faults []error
	if s.Broker != nil {
		faults = append(faults, s.Broker.Close())
	}
	if s.Machine != nil {
		faults = append(faults, s.Machine.Stop(context.Background()))
	}
	return errors.Join(append(faults, os.RemoveAll(s.dir))...)
}

// publish publishes the load on the broker, in atomic batches.
func (s *site) publish(ctx context.Context, l *load) error {
	committer := s.Broker.NewCommitter(stream.CommitConfig{})
	defer committer.Close()
	_, err := committer.Publish(ctx, l.records)
	return err
}

// publishers is how many clients publish over HTTP concurrently.
const publishers = 4

// post publishes the load over HTTP.
func (s *site) post(ctx context.Context, l *load) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, lines := range l.byAgent(publishers) {
		group.Go(func() error {
			_, err := (&client.Publisher{URL: s.Machine.Endpoints().IngestURL}).Publish(ctx, lines)
			return err
		})
	}
	return group.Wait()
}

// until polls until nothing is left.
func until(ctx context.Context, every time.Duration, left func(context.Context) (uint64, error)) error {
	return machine.Poll(ctx, every, func(ctx context.Context) (bool, error) {
		n, err := left(ctx)
		return n == 0, err
	})
}
