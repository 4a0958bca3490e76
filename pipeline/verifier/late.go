package verifier

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/run"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// LateRows is where traces wait whose card nobody had registered, or nobody had
// known to be revoked (store.Store).
type LateRows interface {
	InsertCards(ctx context.Context, registered time.Time, cards []*schema.Card) error
	InsertRevocations(ctx context.Context, revoked []schema.Revocation) error
	TracesOfUnknownCards(ctx context.Context, cardIDs []string, limit int) iter.Seq2[*store.StoredTrace, error]
	TracesOfRevokedCards(ctx context.Context, revoked []schema.Revocation, limit int) iter.Seq2[*store.StoredTrace, error]
	NewVerdictBatch() *store.VerdictBatch
	InsertVerdicts(ctx context.Context, verdicts *store.VerdictBatch) error
}

// lateCards follows the registry: each card and each revocation becomes a row,
// and the traces that came before it are judged from ClickHouse. At a start all
// of them pass through here once more, which absorbs whatever a crash left undone.
type lateCards struct {
	env      *run.Env
	registry *cards.Registry
	rows     LateRows
	outlet   Outlet
	bench    bench

	mu      sync.Mutex
	arrived []string // card ids
	revoked []schema.Revocation
	inHand  int // of both, taken and not settled
	wake    chan struct{}
}

// backlog is how many cards and revocations are no rows yet, or not judged by.
func (l *lateCards) backlog() run.Consumer {
	return run.Consumer{Name: "cards", Backlog: func(context.Context) (uint64, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		return uint64(len(l.arrived) + len(l.revoked) + l.inHand), nil //nolint:gosec // a count
	}}
}

// lateCardIDs is how many cards one query asks for.
const lateCardIDs = 500

// watch follows the registry until ctx ends, and closes known once every card
// and revocation of by now is in memory.
func (l *lateCards) watch(ctx context.Context, known chan<- struct{}) error {
	var once sync.Once
	err := l.env.Retry.Keep(ctx, "watch cards", func() error {
		return l.registry.Watch(ctx, cards.Observer{
			Registered: func(cardID string) { l.add([]string{cardID}, nil) },
			Revoked:    func(revocation schema.Revocation) { l.add(nil, []schema.Revocation{revocation}) },
			Ready:      func() { once.Do(func() { close(known) }) },
			Refused: func(err error) {
				l.env.Log.Error("a registered card or revocation cannot be used, its traces stay as they are judged", "error", err)
			},
		})
	})
	return run.UnlessEnded(ctx, err)
}

// add queues cards and revocations.
func (l *lateCards) add(arrived []string, revoked []schema.Revocation) {
	l.mu.Lock()
	l.arrived, l.revoked = append(l.arrived, arrived...), append(l.revoked, revoked...)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// revocations counts those in memory.
func (l *lateCards) revocations() int {
	_, n := l.registry.RevocationsSince(0)
	return n
}

// recheck queues what was unknown when the traces of an intake were judged and is
// known by now: its arrival may have been noticed before they were stored.
func (l *lateCards) recheck(ctx context.Context, in *intake) {
	if in.rows.Len() == 0 {
		return
	}
	var arrived []string
	for id := range in.unknown {
		if _, err := l.registry.Lookup(ctx, id); err == nil {
			arrived = append(arrived, id)
		}
	}
	revoked, _ := l.registry.RevocationsSince(in.revocations)
	if len(arrived)+len(revoked) > 0 {
		l.add(arrived, revoked)
	}
}

// run takes what is queued until ctx ends.
func (l *lateCards) run(ctx context.Context) error {
	work, stop := l.env.Drain(ctx)
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.wake:
		}
		arrived, revoked := l.take()
		err := inChunks(ctx, arrived, func(chunk []string) error {
			defer l.settled(len(chunk))
			return l.env.Retry.Do(work, "judge traces of late cards", func() error { return l.settleCards(work, chunk) })
		})
		if err != nil {
			return err
		}
		err = inChunks(ctx, revoked, func(chunk []schema.Revocation) error {
			defer l.settled(len(chunk))
			return l.env.Retry.Do(work, "judge traces of revoked cards", func() error { return l.settleRevocations(work, chunk) })
		})
		if err != nil {
			return err
		}
	}
}

// inChunks handles a queue until ctx ends.
func inChunks[T any](ctx context.Context, queue []T, settle func(chunk []T) error) error {
	for chunk := range slices.Chunk(queue, lateCardIDs) {
		if ctx.Err() != nil {
			return nil
		}
		if err := settle(chunk); err != nil {
			return err
		}
	}
	return nil
}

func (l *lateCards) take() (arrived []string, revoked []schema.Revocation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	arrived, revoked = l.arrived, l.revoked
	l.arrived, l.revoked = nil, nil
	l.inHand = len(arrived) + len(revoked)
	return arrived, revoked
}

// settled notes that some of what was taken is done.
func (l *lateCards) settled(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inHand -= n
}
