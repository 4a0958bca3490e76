package verifier

import (
	"context"
	"time"

	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// looked is what a slice's messages are, and what is kept of them.
type looked struct {
	traces   []schema.Trace    // by message; reused
	refusals []*schema.Refusal // by message; nil where it is a trace
	kept     *store.Kept
	dead     map[store.LetterPlace]bool
}

// judge judges the messages of a slice again and gathers what is missing of them.
func (w *replaying) judge(ctx context.Context, inbox []stream.Message) error {
	if err := w.look(ctx, inbox); err != nil {
		return err
	}
	now := time.Now()
	w.bench.warm(ctx, inbox)
	for i := range inbox {
		w.in.take(inbox[i], now)
		if err := w.message(ctx, &inbox[i], i, now); err != nil {
			return err
		}
	}
	return nil
}

// look reads the messages and looks up what is kept of them.
func (w *replaying) look(ctx context.Context, inbox []stream.Message) (err error) {
	if len(w.traces) < len(inbox) {
		w.traces, w.refusals = make([]schema.Trace, w.slice), make([]*schema.Refusal, w.slice)
	}
	var query store.KeptQuery
	sequences := make([]uint64, len(inbox))
	for i := range inbox {
		sequences[i] = inbox[i].Sequence
		if w.refusals[i], err = w.bench.admit(&w.traces[i], &inbox[i]); err != nil {
			return err
		}
		if w.refusals[i] == nil {
			query.Add(&w.traces[i])
		}
	}
	if w.kept, err = w.Store.Kept(ctx, query); err != nil {
		return err
	}
	w.dead, err = w.Store.KeptLetters(ctx, inbox[0].Received.Add(-clockSlack), sequences)
	return err
}

// message decides about one message, the i-th of its slice.
func (w *replaying) message(ctx context.Context, m *stream.Message, i int, now time.Time) error {
	w.summary.Messages++
	switch {
	case w.dead[store.LetterPlace{Sequence: m.Sequence, Digest: schema.DigestOf(stream.LetterData(m.Data))}]:
		w.summary.DeadLetters++
	case w.refusals[i] != nil:
		w.in.refused(m, w.refusals[i])
	default:
		return w.trace(ctx, m, &w.traces[i], now)
	}
	return nil
}

// trace decides about a message that is a trace.
func (w *replaying) trace(ctx context.Context, m *stream.Message, t *schema.Trace, now time.Time) error {
	meta := w.bench.meta(t, m, w.created)
	if !meta.RetainUntil.IsZero() && meta.RetainUntil.Before(now) {
		w.summary.Expired++
		return nil
	}
	if err := w.bench.pass(ctx, t, m.Received, now); err != nil {
		return err
	}
	meta.Redelivered = true // it may be there since the look-up
	return w.complete(t, meta)
}

// complete gathers what is missing of a trace on which the verdict is passed.
func (w *replaying) complete(t *schema.Trace, meta store.Meta) (err error) {
	v := &w.bench.verdict
	stored, judged, receipted := w.kept.Stored(t.Digest, meta.Received), w.kept.Judged(v), w.book.has(meta)
	if stored && judged && receipted {
		w.summary.Unchanged++
		return nil
	}
	if !receipted {
		w.in.receipted(t, meta)
	}
	switch {
	case !stored:
		w.in.stored(t, v, meta) // and the verdict, unless it is there
	case !judged:
		w.verdicts.Add(t, meta, v)
	}
	if !judged {
		w.summary.VerdictsWritten++
		w.in.alerts, err = appendAlerts(w.in.alerts, v)
	}
	w.kept.Note(meta.Received, v)
	return err
}
