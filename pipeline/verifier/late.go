package verifier

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/run"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// LateRows is where traces wait whose card nobody had registered (store.Store).
type LateRows interface {
	InsertCards(ctx context.Context, registered time.Time, cards []*schema.Card) error
	TracesOfUnknownCards(ctx context.Context, cardIDs []string, limit int) iter.Seq2[*store.StoredTrace, error]
	NewVerdictBatch() *store.VerdictBatch
	InsertVerdicts(ctx context.Context, verdicts *store.VerdictBatch) error
}

// lateCards follows the registry: each card becomes a row, and the traces that
// came before their card are judged from ClickHouse. At a start all cards pass
// through here once more, which absorbs whatever a crash left undone.
type lateCards struct {
	env      *run.Env
	registry *cards.Registry
	rows     LateRows
	outlet   Outlet
	bench    bench

	mu      sync.Mutex
	pending []*cards.Card
	wake    chan struct{}
}

// lateRows is how many traces are judged between two inserts.
const lateRows = 5000

// lateCardIDs is how many cards one query asks for.
const lateCardIDs = 500

// watch follows the registry until ctx ends, and closes known once every card
// registered by now is in memory.
func (l *lateCards) watch(ctx context.Context, known chan<- struct{}) error {
	var once sync.Once
	err := l.env.Retry.Do(ctx, "watch cards", func() error {
		return l.registry.Watch(ctx, l.add, func() { once.Do(func() { close(known) }) }, func(err error) {
			l.env.Log.Error("a registered card cannot be used, its traces stay unjudged", "error", err)
		})
	})
	return run.UnlessEnded(ctx, err)
}

// add queues a card.
func (l *lateCards) add(card *cards.Card) {
	l.mu.Lock()
	l.pending = append(l.pending, card)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// recheck queues the cards that were unknown when traces were judged and are
// known by now: their arrival may have been noticed before the traces were stored.
func (l *lateCards) recheck(ctx context.Context, unknown map[string]bool) {
	for id := range unknown {
		if card, err := l.registry.Lookup(ctx, id); err == nil {
			l.add(card)
		}
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
		for queue := l.take(); len(queue) > 0 && ctx.Err() == nil; {
			chunk := queue[:min(lateCardIDs, len(queue))]
			queue = queue[len(chunk):]
			if err := l.env.Retry.Do(work, "judge traces of late cards", func() error { return l.settle(work, chunk) }); err != nil {
				return err
			}
		}
	}
}

func (l *lateCards) take() []*cards.Card {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := l.pending
	l.pending = nil
	return queue
}

// settle stores the cards and judges every trace that waited for one of them.
func (l *lateCards) settle(ctx context.Context, arrived []*cards.Card) error {
	ids, rows := make([]string, len(arrived)), make([]*schema.Card, len(arrived))
	for i, card := range arrived {
		ids[i], rows[i] = card.Card.CardID, card.Card
	}
	if err := l.rows.InsertCards(ctx, time.Now(), rows); err != nil {
		return err
	}
	for {
		judged, err := l.judgeSome(ctx, ids)
		if err != nil || judged < lateRows {
			return err
		}
	}
}

// judgeSome judges up to lateRows traces and returns how many there were.
func (l *lateCards) judgeSome(ctx context.Context, cardIDs []string) (int, error) {
	verdicts, now := l.rows.NewVerdictBatch(), time.Now()
	var alerts []stream.Alert
	for stored, err := range l.rows.TracesOfUnknownCards(ctx, cardIDs, lateRows) {
		if err != nil {
			return 0, err
		}
		if err := l.bench.decoder.Admit(&l.bench.trace, stored.AgentID, stored.Raw); err != nil {
			return 0, fmt.Errorf("stored trace %s of agent %s is not what was admitted: %w", stored.TraceID, stored.AgentID, err)
		}
		if err := l.bench.pass(ctx, stored.Received, now); err != nil {
			return 0, err
		}
		verdicts.Add(&l.bench.trace, stored.Meta(), &l.bench.verdict)
		if alerts, err = appendAlerts(alerts, &l.bench.verdict); err != nil {
			return 0, err
		}
	}
	if verdicts.Len() == 0 {
		return 0, nil
	}
	if err := l.rows.InsertVerdicts(ctx, verdicts); err != nil {
		return 0, err
	}
	if len(alerts) > 0 {
		if err := l.outlet.PublishAlerts(ctx, alerts); err != nil {
			return 0, err
		}
	}
	return verdicts.Len(), nil
}
