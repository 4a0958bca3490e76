package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/plumbline/plumbline/cmd/plumbline/rest"
	"github.com/plumbline/plumbline/machine"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// watch polls the progress of a machine's stages.
type watch struct {
	rest.Watch
	rows     *store.Store
	progress func(string)
}

// openWatch connects to the machine's broker, and to its database as an operator who may read
// dead letters.
func openWatch(ctx context.Context, m *machine.Machine, progress func(string)) (*watch, error) {
	at := m.Endpoints()
	broker, err := stream.Connect(ctx, stream.Config{URL: at.NATSURL, Name: "demo"})
	if err != nil {
		return nil, err
	}
	rows, err := store.Open(ctx, store.Config{DSN: at.OperatorDSN, Stage: "demo"})
	if err != nil {
		return nil, errors.Join(err, broker.Close())
	}
	return &watch{Watch: rest.Watch{Machine: m, Broker: broker}, rows: rows, progress: progress}, nil
}

func (w *watch) close() error { return errors.Join(w.rows.Close(), w.Broker.Close()) }

const (
	lookEvery = 50 * time.Millisecond
	tellEvery = time.Second
	// patience is how long to wait for a stage without progress. After that, the unfinished work
	// counts as missing, and the comparison reports it.
	patience = time.Minute
)

// until polls until nothing is left to do, or until there is no more progress.
func (w *watch) until(ctx context.Context, doing string, look func(context.Context) (left uint64, err error)) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	told, moved, before := time.Now(), time.Now(), uint64(0)
	for {
		left, err := look(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", doing, err)
		}
		if left != before {
			before, moved = left, time.Now()
		}
		if left == 0 || time.Since(moved) > patience {
			return nil
		}
		if time.Since(told) > tellEvery {
			told = time.Now()
			w.progress(fmt.Sprintf("%s: %d left", doing, left))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// unburied counts the refused lines of this run that are not dead letters yet.
func (w *watch) unburied(p *published) func(context.Context) (uint64, error) {
	return func(ctx context.Context) (uint64, error) {
		letters, err := w.rows.DeadLetters(ctx)
		return uint64(len(p.refused) - len(p.lettersOf(letters))), err
	}
}

// unsealed counts the traces of this run that no bundle contains.
func (w *watch) unsealed(p *published) func(context.Context) (uint64, error) {
	return func(ctx context.Context) (uint64, error) {
		bundles, err := w.rows.Bundles(ctx, "", "")
		if err != nil {
			return 0, err
		}
		return uint64(len(p.ids) - len(p.sealedIDs(bundles))), nil
	}
}
