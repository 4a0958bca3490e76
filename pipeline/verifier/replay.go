package verifier

import (
	"context"
	"log/slog"
	"time"

	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/messages"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// Replay judges again what the verifier has acked, and writes what is missing: rows, verdicts of
// this engine version and the current cards, receipts, dead letters, and the alerts of verdicts
// that it writes. It may run while the pipeline works. It may be interrupted and repeated: it
// looks up what exists and does not write it again. It acks nothing.
type Replay struct {
	Client   *stream.Client
	Store    *store.Store // with a user who may insert
	Policies *messages.Policies
	Rules    Rules // of the verifier
	Log      *slog.Logger

	From  uint64    // first sequence of stream TRACES; 0: its first message, or the one that Since selects
	Since time.Time // without From: the first message that the broker received then or later
	To    uint64    // last sequence; 0, or beyond it: as far as the verifier has acked

	Progress func(*ReplaySummary) // called after each slice; optional
}

// ReplaySummary counts messages of stream TRACES, and what was written for them.
type ReplaySummary struct {
	Through  uint64 `json:"through_sequence"` // the last message to be judged
	Next     uint64 `json:"next_sequence"`    // where to continue; beyond Through when all is done
	Messages int    `json:"messages"`

	Unchanged   int `json:"unchanged"`    // row, verdict and receipt existed
	DeadLetters int `json:"dead_letters"` // were dead letters and remain so
	Expired     int `json:"expired"`      // retention has removed them, or may remove them: nothing is written

	RowsWritten     int `json:"rows_written"`
	VerdictsWritten int `json:"verdicts_written"`
	ReceiptsWritten int `json:"receipts_written"`
	LettersWritten  int `json:"dead_letters_written"`
	Alerts          int `json:"alerts_published"`
}

// Written returns how many items were missing and written.
func (s *ReplaySummary) Written() int {
	return s.RowsWritten + s.VerdictsWritten + s.ReceiptsWritten + s.LettersWritten
}

// Run replays. The summary counts what was done, also together with an error. To do the rest,
// replay from Next.
func (r *Replay) Run(ctx context.Context) (ReplaySummary, error) {
	return r.run(ctx, r.Store, r.Client, replaySlice)
}

func (r *Replay) run(ctx context.Context, rows Rows, outlet Outlet, slice int) (ReplaySummary, error) {
	registry, err := cards.Open(ctx, r.Client, config.DefaultCardCacheBytes)
	if err != nil {
		return ReplaySummary{}, err
	}
	auditor, err := newAuditor(ctx, r.Client, r.Policies)
	if err != nil {
		return ReplaySummary{}, err
	}
	judging, err := newWorkspace(registry, auditor, &r.Rules)
	if err != nil {
		return ReplaySummary{}, err
	}
	w := &replaying{
		Replay: r, rows: rows, outlet: outlet, workspace: judging, slice: slice,
		batch: batch{rows: r.Store.NewTraceBatch()}, verdicts: r.Store.NewVerdictBatch(),
	}
	err = registry.While(ctx, r.Log, w.run)
	return w.summary, err
}

// replaySlice is how many messages are looked up and written at once.
const replaySlice = 5000

// replaying is the state of a replay.
type replaying struct {
	*Replay
	rows      Rows
	outlet    Outlet
	workspace workspace
	slice     int // most messages of one slice

	created  time.Time    // of TRACES
	receipts stream.State // state of RECEIPTS when the verifier had acked everything to be judged
	letters  stream.State // state of DEADLETTER at the same time
	book     *receiptBook // nil before the first slice

	lookup
	batch    batch
	verdicts *store.VerdictBatch // verdicts on traces that are stored already
	summary  ReplaySummary
}

// run judges slice after slice.
func (w *replaying) run(ctx context.Context) error {
	traces, err := w.bound(ctx)
	if err != nil {
		return err
	}
	source, err := w.Client.ReadThrough(ctx, stream.ConsumerConfig{Stream: stream.Traces, From: w.From, Since: w.Since}, w.summary.Through, traces)
	if err != nil {
		return err
	}
	defer source.Close()
	for {
		inbox, err := source.Next(ctx, w.slice)
		if err != nil {
			return err
		}
		if len(inbox) == 0 {
			w.summary.Next = w.summary.Through + 1
			return nil
		}
		if w.book == nil {
			if err := w.begin(ctx, &inbox[0]); err != nil {
				return err
			}
		}
		if err := w.replay(ctx, inbox); err != nil {
			return err
		}
		w.summary.Next = inbox[len(inbox)-1].Sequence + 1
		if w.Progress != nil {
			w.Progress(&w.summary)
		}
	}
}

// bound determines how far to judge. It reads the verifier's ack floor first: receipts and dead
// letters of messages up to it are written by then.
func (w *replaying) bound(ctx context.Context) (traces stream.State, err error) {
	progress, err := w.Client.ConsumerProgress(ctx, stream.Traces, stream.VerifierConsumer)
	if err != nil {
		return traces, err
	}
	w.summary.Through = progress.AckFloor
	if w.To > 0 {
		w.summary.Through = min(w.To, progress.AckFloor)
	}
	if w.receipts, err = w.Client.StreamState(ctx, stream.Receipts); err != nil {
		return traces, err
	}
	if w.letters, err = w.Client.StreamState(ctx, stream.DeadLetters); err != nil {
		return traces, err
	}
	traces, err = w.Client.StreamState(ctx, stream.Traces)
	w.created, w.summary.Next = traces.Created, max(w.From, traces.FirstSequence)
	return traces, err
}

// begin reads the receipts and dead letters of the messages from first on.
func (w *replaying) begin(ctx context.Context, first *stream.Message) (err error) {
	if err := w.restoreLetters(ctx, first); err != nil {
		return err
	}
	w.book, err = w.readReceipts(ctx, first)
	return err
}

// replay judges a slice again and writes what is missing. It does not count what an error
// prevented.
func (w *replaying) replay(ctx context.Context, inbox []stream.Message) error {
	before := w.summary
	err := w.judge(ctx, inbox)
	if err == nil {
		err = w.commit(ctx)
	}
	if err != nil {
		w.summary = before
	}
	w.batch.reset()
	w.verdicts.Reset()
	return err
}

// commit writes what is missing. Alerts are published first: the next replay publishes none for a
// verdict that exists.
func (w *replaying) commit(ctx context.Context) error {
	b, s := &w.batch, &w.summary
	if len(b.alerts) > 0 {
		if err := w.outlet.PublishAlerts(ctx, b.alerts); err != nil {
			return err
		}
	}
	refused := len(b.dead)
	if err := b.insert(ctx, w.rows); err != nil {
		return err
	}
	if err := w.Store.InsertVerdicts(ctx, w.verdicts); err != nil {
		return err
	}
	for _, letter := range b.dead {
		if err := w.outlet.DeadLetter(ctx, letter); err != nil {
			return err
		}
	}
	if err := w.outlet.PublishReceipts(ctx, b.receipts[:]); err != nil {
		return err
	}
	unstorable := len(b.dead) - refused
	s.RowsWritten += b.rows.Len() - unstorable
	s.LettersWritten += len(b.dead)
	s.Alerts += len(b.alerts)
	for _, receipts := range b.receipts {
		s.ReceiptsWritten += len(receipts)
	}
	return nil
}

// lookup holds a slice's messages and what is stored about them.
type lookup struct {
	traces   []schema.Trace    // by message; reused
	refusals []*schema.Refusal // by message; nil where it is a valid trace
	kept     *store.Kept
	dead     map[store.LetterPlace]bool
}

// judge judges the messages of a slice again and collects what is missing.
func (w *replaying) judge(ctx context.Context, inbox []stream.Message) error {
	if err := w.lookUp(ctx, inbox); err != nil {
		return err
	}
	now := time.Now()
	w.workspace.warm(ctx, inbox)
	for i := range inbox {
		w.batch.take(inbox[i], now)
		if err := w.message(ctx, &inbox[i], i, now); err != nil {
			return err
		}
	}
	return nil
}

// lookUp decodes the messages and looks up what is stored about them.
func (w *replaying) lookUp(ctx context.Context, inbox []stream.Message) (err error) {
	if len(w.traces) < len(inbox) {
		w.traces, w.refusals = make([]schema.Trace, w.slice), make([]*schema.Refusal, w.slice)
	}
	var query store.KeptQuery
	sequences := make([]uint64, len(inbox))
	for i := range inbox {
		sequences[i] = inbox[i].Sequence
		if w.refusals[i], err = w.workspace.admit(&w.traces[i], &inbox[i]); err != nil {
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

// message processes one message, the i-th of its slice.
func (w *replaying) message(ctx context.Context, m *stream.Message, i int, now time.Time) error {
	w.summary.Messages++
	switch {
	case w.dead[store.LetterPlace{Sequence: m.Sequence, Digest: schema.DigestOf(wire.Kept(m.Data))}]:
		w.summary.DeadLetters++
	case w.refusals[i] != nil:
		w.batch.refused(m, w.refusals[i])
	default:
		return w.trace(ctx, m, &w.traces[i], now)
	}
	return nil
}

// trace judges a message that is a valid trace.
func (w *replaying) trace(ctx context.Context, m *stream.Message, t *schema.Trace, now time.Time) error {
	meta := w.workspace.meta(t, m, w.created)
	if !meta.RetainUntil.IsZero() && meta.RetainUntil.Before(now) {
		w.summary.Expired++
		return nil
	}
	if err := w.workspace.verify(ctx, t, m.Received, now); err != nil {
		return err
	}
	meta.Redelivered = true // it may have been stored since the look-up
	return w.complete(t, meta)
}

// complete collects what is missing for a trace that was judged.
func (w *replaying) complete(t *schema.Trace, meta store.Meta) (err error) {
	v := &w.workspace.verdict
	stored, judged, receipted := w.kept.Stored(t.Digest, meta.Received), w.kept.Judged(v), w.book.has(meta)
	if stored && judged && receipted {
		w.summary.Unchanged++
		return nil
	}
	if !receipted {
		w.batch.receipted(t, meta)
	}
	switch {
	case !stored:
		w.batch.stored(t, v, meta) // also the verdict, unless it exists
	case !judged:
		w.verdicts.Add(t, meta, v)
	}
	if !judged {
		w.summary.VerdictsWritten++
		w.batch.alerts, err = appendAlerts(w.batch.alerts, v)
	}
	w.kept.Note(meta.Received, v)
	return err
}
