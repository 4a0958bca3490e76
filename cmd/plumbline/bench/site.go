package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/cmd/plumbline/publisher"
	"github.com/plumbline/plumbline/cmd/plumbline/rest"
	"github.com/plumbline/plumbline/machine"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// site is a machine on an empty data directory, and a connection to its broker.
type site struct {
	rest.Watch
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

func (s *site) register(ctx context.Context, raw [][]byte) error {
	registry, err := cards.Open(ctx, s.Broker, 0)
	if err != nil {
		return err
	}
	for _, card := range raw {
		if _, _, err := registry.Put(ctx, card); err != nil {
			return err
		}
	}
	return nil
}

// publish publishes the load on the broker, in atomic batches.
func (s *site) publish(ctx context.Context, l *load) error {
	committer := s.Broker.NewCommitter(stream.CommitConfig{})
	defer committer.Close()
	_, err := committer.Publish(ctx, l.records)
	return err
}

const (
	publishers   = 4 // over HTTP, concurrently
	requestLines = 2000
)

// post publishes the load over HTTP.
func (s *site) post(ctx context.Context, l *load) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, lines := range l.byAgent(publishers) {
		group.Go(func() error {
			client := &publisher.Client{URL: s.Machine.Endpoints().IngestURL}
			for len(lines) > 0 {
				n := min(requestLines, len(lines))
				if _, err := client.Send(ctx, lines[:n]); err != nil {
					return err
				}
				lines = lines[n:]
			}
			return nil
		})
	}
	return group.Wait()
}

// until polls until left returns 0.
func until(ctx context.Context, every time.Duration, left func(context.Context) (uint64, error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if n, err := left(ctx); err != nil || n == 0 {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// counts counts the rows that readers see.
func (s *site) counts(ctx context.Context) (c store.Counts, err error) {
	rows, err := store.Open(ctx, store.Config{DSN: s.Machine.Endpoints().ClickHouseDSN, Stage: "bench"})
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	return rows.Counts(ctx)
}

// expect returns an error unless as many rows are there as were published.
func expect(what string, got uint64, want int) error {
	if got != uint64(want) {
		return fmt.Errorf("%d %s are queryable, want %d", got, what, want)
	}
	return nil
}
