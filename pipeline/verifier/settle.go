package verifier

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// lateRows is how many traces are judged between two inserts.
const lateRows = 5000

// settleCards stores the cards and judges every trace that waited for one of them.
func (l *lateCards) settleCards(ctx context.Context, cardIDs []string) error {
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
	return l.judgeAll(ctx, func() iter.Seq2[*store.StoredTrace, error] {
		return l.rows.TracesOfUnknownCards(ctx, ids, lateRows)
	})
}

// settleRevocations stores the revocations and judges every trace anew that was
// judged without knowing of one of them and that it concerns.
func (l *lateCards) settleRevocations(ctx context.Context, revoked []schema.Revocation) error {
	if err := l.rows.InsertRevocations(ctx, revoked); err != nil {
		return err
	}
	return l.judgeAll(ctx, func() iter.Seq2[*store.StoredTrace, error] {
		return l.rows.TracesOfRevokedCards(ctx, revoked, lateRows)
	})
}

// judgeAll judges traces until next yields fewer than lateRows of them.
func (l *lateCards) judgeAll(ctx context.Context, next func() iter.Seq2[*store.StoredTrace, error]) error {
	for {
		judged, err := l.judgeSome(ctx, next())
		if err != nil || judged < lateRows {
			return err
		}
	}
}

// judgeSome judges traces and returns how many there were.
func (l *lateCards) judgeSome(ctx context.Context, traces iter.Seq2[*store.StoredTrace, error]) (int, error) {
	verdicts, now := l.rows.NewVerdictBatch(), time.Now()
	var alerts []stream.Alert
	for stored, err := range traces {
		if err != nil {
			return 0, err
		}
		if err := l.judge(ctx, stored, now); err != nil {
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
	// The alerts first: a trace whose verdict is stored is not found again.
	if len(alerts) > 0 {
		if err := l.outlet.PublishAlerts(ctx, alerts); err != nil {
			return 0, err
		}
	}
	if err := l.rows.InsertVerdicts(ctx, verdicts); err != nil {
		return 0, err
	}
	return verdicts.Len(), nil
}

// judge passes the verdict on a stored trace, whose card is known by now.
func (l *lateCards) judge(ctx context.Context, stored *store.StoredTrace, now time.Time) error {
	if err := l.bench.decoder.Admit(&l.bench.trace, stored.AgentID, stored.Raw); err != nil {
		return fmt.Errorf("stored trace %s of agent %s is not what was admitted: %w", stored.TraceID, stored.AgentID, err)
	}
	if err := l.bench.pass(ctx, &l.bench.trace, stored.Received, now); err != nil {
		return err
	}
	if l.bench.verdict.Status == schema.StatusCardUnknown { // it would be asked for without end
		return fmt.Errorf("stored trace %s of agent %s: card %q: %w", stored.TraceID, stored.AgentID, stored.CardID, cards.ErrUnknown)
	}
	return nil
}
