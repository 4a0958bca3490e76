package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/plumbline/plumbline/local"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
)

// watch asks a machine how far its stages are.
type watch struct {
	machine  *local.Machine
	broker   *stream.Client
	rows     *store.Store
	progress func(string)
}

// openWatch connects to the machine's broker and, as a reader, its database.
func openWatch(ctx context.Context, m *local.Machine, progress func(string)) (*watch, error) {
	at := m.Endpoints()
	broker, err := stream.Connect(ctx, stream.Config{URL: at.NATSURL, Name: "demo"})
	if err != nil {
		return nil, err
	}
	rows, err := store.Open(ctx, store.Config{DSN: at.ClickHouseDSN, Stage: "demo"})
	if err != nil {
		return nil, errors.Join(err, broker.Close())
	}
	return &watch{machine: m, broker: broker, rows: rows, progress: progress}, nil
}

func (w *watch) close() error { return errors.Join(w.rows.Close(), w.broker.Close()) }

const (
	lookEvery = 50 * time.Millisecond
	tellEvery = time.Second
	// patience is for a stage that gets no further: what it has not done by then is
	// missing, and the comparison says so.
	patience = time.Minute
)

// until looks until nothing is left to do, or nothing moves any more; then it
// returns what was left.
func (w *watch) until(ctx context.Context, doing string, look func(context.Context) (left uint64, err error)) (uint64, error) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	told, moved, before := time.Now(), time.Now(), uint64(0)
	for {
		left, err := look(ctx)
		if err != nil {
			return left, fmt.Errorf("%s: %w", doing, err)
		}
		if left != before {
			before, moved = left, time.Now()
		}
		if left == 0 || time.Since(moved) > patience {
			return left, nil
		}
		if time.Since(told) > tellEvery {
			told = time.Now()
			w.progress(fmt.Sprintf("%s: %d left", doing, left))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return left, ctx.Err()
		}
	}
}

// unjudged counts the traces in the stream that the verifier has not stored.
func (w *watch) unjudged(ctx context.Context) (uint64, error) {
	return w.behind(ctx, stream.Traces, stream.VerifierConsumer)
}

// behind counts the messages of a stream that its only consumer has not acknowledged.
func (w *watch) behind(ctx context.Context, name, consumer string) (uint64, error) {
	state, err := w.broker.StreamState(ctx, name)
	if err != nil {
		return 0, err
	}
	progress, err := w.broker.ConsumerProgress(ctx, name, consumer)
	if err != nil {
		return 0, err
	}
	return state.LastSequence - min(progress.AckFloor, state.LastSequence), nil
}

// unwatched counts the traces that drift detection has not applied.
func (w *watch) unwatched(ctx context.Context) (left uint64, err error) {
	for partition := range subject.Partitions {
		progress, err := w.broker.ConsumerProgress(ctx, stream.Traces, stream.DriftConsumer(partition))
		if err != nil {
			return 0, err
		}
		left += progress.Pending + uint64(progress.Unacked)
	}
	return left, nil
}

// unburied counts the refused lines of this run that are no dead letters yet.
func (w *watch) unburied(p *published) func(context.Context) (uint64, error) {
	return func(ctx context.Context) (uint64, error) {
		letters, err := w.rows.DeadLetters(ctx)
		return uint64(len(p.refused) - len(p.lettersOf(letters))), err
	}
}

// unfolded counts the messages that the exporter has not looked at, in the
// sense that whatever was to be sealed because of them is sealed.
func (w *watch) unfolded(ctx context.Context) (uint64, error) {
	state, err := w.broker.StreamState(ctx, stream.Receipts)
	if err != nil {
		return 0, err
	}
	at, err := gauge(w.machine.Registry(), "plumbline_exporter_receipts_sequence")
	if err != nil {
		return 0, err
	}
	return state.LastSequence - min(uint64(at), state.LastSequence), nil
}

// unsealed counts the traces of this run that no bundle holds.
func (w *watch) unsealed(p *published) func(context.Context) (uint64, error) {
	return func(ctx context.Context) (uint64, error) {
		bundles, err := w.rows.Bundles(ctx, "", "")
		if err != nil {
			return 0, err
		}
		return uint64(len(p.ids) - len(p.sealedIDs(bundles))), nil
	}
}
