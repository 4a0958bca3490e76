package verifier

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// LateRows finds stored traces whose card was registered or revoked after they were judged
// (store.Store).
type LateRows interface {
	InsertCards(ctx context.Context, registered time.Time, cards []*schema.Card) error
	InsertCardPosition(ctx context.Context, bucketCreated time.Time, revision uint64) error
	InsertRevocations(ctx context.Context, revoked []schema.Revocation) error
	TracesOfUnknownCards(ctx context.Context, cardIDs []string, limit int) iter.Seq2[*store.StoredTrace, error]
	TracesOfRevokedCards(ctx context.Context, revoked []schema.Revocation, after *store.StoredTrace, limit int) iter.Seq2[*store.StoredTrace, error]
	NewVerdictBatch() *store.VerdictBatch
	InsertVerdicts(ctx context.Context, verdicts *store.VerdictBatch) error
}

// lateCards follows the registry. Each card and each revocation becomes a row, and the traces
// that came before it are read from ClickHouse and judged. That is repeated at a start for all
// revocations, for the recent ones whenever the process gets other partitions, and at a start for the
// cards after the position that is stored with the rows (store.InsertCardPosition), which completes
// what a crash interrupted. If rows are missing, it is repeated for all cards (cards.Rely).
type lateCards struct {
	env        *service.Env
	registry   *cards.Registry
	created    time.Time // of the bucket of cards
	rows       LateRows
	outlet     Outlet
	workspace  workspace // of run
	rechecking workspace // of commit (recheck and settle), which runs beside run

	mu      sync.Mutex
	arrived []registered // in the order of the bucket
	revoked []schema.Revocation
	inHand  int // number of cards and revocations taken from the queue and not done
	wake    chan struct{}
}

// registered is a card that the registry watched in.
type registered struct {
	cardID   string
	revision uint64
}

// backlog returns the number of cards and revocations that are not rows yet, or whose traces are
// still to be judged.
func (l *lateCards) backlog() service.Consumer {
	return service.Consumer{Name: "cards", Backlog: func(context.Context) (uint64, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		return uint64(len(l.arrived) + len(l.revoked) + l.inHand), nil
	}}
}

// lateCardIDs is how many cards one query asks for.
const lateCardIDs = 500

// watch follows the registry until ctx ends. It closes known once the registry knows, or can look
// up, every card and revocation that existed at the start.
func (l *lateCards) watch(ctx context.Context, known chan<- struct{}) error {
	return l.registry.Follow(ctx, l.env.Retry, l.env.Log, "the verdicts on its traces do not change", cards.Observer{
		Registered: func(cardID string, revision uint64) { l.add([]registered{{cardID, revision}}, nil) },
		Revoked:    func(revocation schema.Revocation) { l.add(nil, []schema.Revocation{revocation}) },
		Ready:      func() { close(known) },
	})
}

func (l *lateCards) add(arrived []registered, revoked []schema.Revocation) {
	l.mu.Lock()
	l.arrived, l.revoked = append(l.arrived, arrived...), append(l.revoked, revoked...)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// recheck judges the traces of a batch again whose cards were registered since they were judged:
// the arrival of such a card may have been processed before the traces were stored. It runs before
// their position is recorded, because the next start does not process the card again.
func (l *lateCards) recheck(ctx context.Context, b *batch) error {
	if len(b.unknown) == 0 || b.rows.Len() == 0 {
		return nil
	}
	arrived, err := l.registry.Arrived(ctx, maps.Keys(b.unknown))
	if err != nil || len(arrived) == 0 {
		return err
	}
	return l.judgeCards(ctx, &l.rechecking, arrived)
}

// recheckRevocations queues the revocations that arrived since the traces of the batch were
// judged. If the process ends before they are processed, the next owner of the partitions processes
// them again (recheckRecent).
func (l *lateCards) recheckRevocations(b *batch) {
	if b.rows.Len() == 0 {
		return
	}
	if revoked, _ := l.registry.RevocationsSince(b.revocations); len(revoked) > 0 {
		l.add(nil, revoked)
	}
}

// recentRevocation is how long the revocation of a card is recent. A trace that was judged before a
// revocation is stored much sooner after it, unless the database is away.
const recentRevocation = time.Hour

// recheckRecent queues the recent revocations when this process gets other partitions: their last owner
// may have stored traces that it judged before one of them, and ended before it judged them again.
// Older ones are left out, because a query for many cards reads much and partitions may move often.
func (l *lateCards) recheckRecent(now time.Time) {
	known, _ := l.registry.RevocationsSince(0)
	var recent []schema.Revocation
	for _, revocation := range known {
		if now.Sub(revocation.RevokedAt) < recentRevocation {
			recent = append(recent, revocation)
		}
	}
	if len(recent) > 0 {
		l.add(nil, recent)
	}
}

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
		if err := inChunks(ctx, work, l, "judge traces of late cards", arrived, l.settle); err != nil {
			return err
		}
		if err := inChunks(ctx, work, l, "judge traces of revoked cards", revoked, l.judgeRevocations); err != nil {
			return err
		}
	}
}

// inChunks processes what was taken from the queue, in chunks, until ctx ends.
func inChunks[T any](ctx, work context.Context, l *lateCards, operation string, queue []T, judge func(context.Context, []T) error) error {
	for chunk := range slices.Chunk(queue, lateCardIDs) {
		if ctx.Err() != nil {
			return nil
		}
		err := l.env.Retry.Do(work, operation, func() error { return judge(work, chunk) })
		l.mu.Lock()
		l.inHand -= len(chunk)
		l.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *lateCards) take() (arrived []registered, revoked []schema.Revocation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	arrived, revoked = l.arrived, once(l.revoked)
	l.arrived, l.revoked = nil, nil
	l.inHand = len(arrived) + len(revoked)
	return arrived, revoked
}

// once returns each card's revocation once: partitions may have moved several times meanwhile.
func once(revoked []schema.Revocation) []schema.Revocation {
	seen := make(map[string]bool, len(revoked))
	return slices.DeleteFunc(revoked, func(revocation schema.Revocation) bool {
		known := seen[revocation.CardID]
		seen[revocation.CardID] = true
		return known
	})
}

// lateRows is how many traces are judged between two inserts.
const lateRows = 5000

// settle makes the cards rows, judges the traces that came before them, and stores how far it came.
func (l *lateCards) settle(ctx context.Context, arrived []registered) error {
	ids := make([]string, len(arrived))
	for i := range arrived {
		ids[i] = arrived[i].cardID
	}
	if err := l.judgeCards(ctx, &l.workspace, ids); err != nil {
		return err
	}
	return l.rows.InsertCardPosition(ctx, l.created, arrived[len(arrived)-1].revision)
}

// judgeCards stores the cards and judges every trace that was stored without one of them.
func (l *lateCards) judgeCards(ctx context.Context, w *workspace, cardIDs []string) error {
	arrived, err := l.registry.LookupAll(ctx, cardIDs)
	if err != nil {
		return err
	}
	ids, rows := make([]string, len(arrived)), make([]*schema.Card, len(arrived))
	for i, card := range arrived {
		ids[i], rows[i] = card.Entry.CardID, card.Card
	}
	if err := l.rows.InsertCards(ctx, time.Now(), rows); err != nil {
		return err
	}
	return l.judgeAll(ctx, w, func(*store.StoredTrace) iter.Seq2[*store.StoredTrace, error] {
		return l.rows.TracesOfUnknownCards(ctx, ids, lateRows)
	})
}

// judgeRevocations stores the revocations and judges again every trace that one of them affects
// and that was judged without it.
func (l *lateCards) judgeRevocations(ctx context.Context, revoked []schema.Revocation) error {
	if err := l.rows.InsertRevocations(ctx, revoked); err != nil {
		return err
	}
	return l.judgeAll(ctx, &l.workspace, func(last *store.StoredTrace) iter.Seq2[*store.StoredTrace, error] {
		return l.rows.TracesOfRevokedCards(ctx, revoked, last, lateRows)
	})
}

// judgeAll judges traces until next yields fewer than lateRows of them. It passes the last trace that it judged to next,
// which is nil at first.
func (l *lateCards) judgeAll(ctx context.Context, w *workspace, next func(last *store.StoredTrace) iter.Seq2[*store.StoredTrace, error]) error {
	var trace schema.Trace
	var verdict schema.Verdict
	var last *store.StoredTrace
	for {
		verdicts, now := l.rows.NewVerdictBatch(), time.Now()
		var alerts []wire.Alert
		for stored, err := range next(last) {
			if err != nil {
				return err
			}
			last = stored
			if err := w.decoder.Admit(&trace, stored.AgentID, stored.Raw); err != nil {
				return fmt.Errorf("stored trace %s of agent %s is no longer a valid trace: %w", stored.TraceID, stored.AgentID, err)
			}
			if _, err := w.verify(ctx, &trace, &verdict, stored.Received, now); err != nil {
				return err
			}
			if verdict.Status == schema.StatusCardUnknown { // otherwise the query would return it forever
				return fmt.Errorf("stored trace %s of agent %s: card %q: %w", stored.TraceID, stored.AgentID, stored.CardID, cards.ErrUnknown)
			}
			verdicts.Add(&trace, stored.Meta(), &verdict)
			if alerts, err = appendAlerts(alerts, &verdict); err != nil {
				return err
			}
		}
		if verdicts.Len() == 0 {
			return nil
		}
		// Alerts are published first: after the insert the query does not return these traces
		// again.
		if err := l.outlet.PublishAlerts(ctx, alerts); err != nil {
			return err
		}
		if err := l.rows.InsertVerdicts(ctx, verdicts); err != nil || verdicts.Len() < lateRows {
			return err
		}
	}
}
