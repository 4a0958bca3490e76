package verifier

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/messages"
	"github.com/plumbline/plumbline/pipeline/sink"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/walk"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// Replay judges again what the verifier is done with, and writes what is missing: rows, verdicts of
// this engine version and the current cards, receipts, dead letters, and the alerts of verdicts
// that it writes. It may run while the pipeline works. It may be interrupted and repeated: it
// looks up what exists and does not write it again. It records no position.
type Replay struct {
	Client   *stream.Client
	Store    *store.Store // with a user who may insert
	Policies *messages.Policies
	Rules    Rules // of the verifier
	Log      *slog.Logger

	From  uint64    // first sequence of stream TRACES; 0: its first message, or the one that Since selects
	Since time.Time // without From: the first message that the broker received then or later
	To    uint64    // last sequence; 0, or beyond it: as far as the verifier is done

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
		Replay: r, rows: rows, outlet: outlet, workspace: judging, traces: make([]schema.Trace, slice), refusals: make([]*schema.Refusal, slice),
		batch: batch{rows: r.Store.NewTraceBatch()}, verdicts: r.Store.NewVerdictBatch(),
	}
	err = registry.While(ctx, r.Log, w.run)
	return w.summary, err
}

// replaySlice is how many messages are looked up and written at once.
const replaySlice = 5000

type replaying struct {
	*Replay
	rows      Rows
	outlet    Outlet
	workspace workspace

	created  time.Time    // of TRACES
	receipts stream.State // state of RECEIPTS when the verifier was done with everything to be judged
	letters  stream.State // state of DEADLETTER at the same time
	book     *receiptBook // nil before the first slice

	traces   []schema.Trace    // of a slice, by message; as many as a slice may have; reused
	refusals []*schema.Refusal // by message; nil where it is a valid trace
	verdict  schema.Verdict    // on the trace that was judged last

	batch    batch
	verdicts *store.VerdictBatch // verdicts on traces that are stored already
	summary  ReplaySummary
}

// run judges slice after slice, as far as the verifier is done.
func (w *replaying) run(ctx context.Context) error {
	floor, states, err := walk.Verified(ctx, w.Client, stream.Receipts, stream.DeadLetters, stream.Traces)
	if err != nil {
		return err
	}
	traces := states[2]
	w.receipts, w.letters, w.created = states[0], states[1], traces.Created
	w.summary.Through, w.summary.Next = floor, max(w.From, traces.FirstSequence)
	if w.To > 0 {
		w.summary.Through = min(w.To, floor)
	}
	traces.LastSequence = w.summary.Through
	within := stream.ConsumerConfig{Stream: stream.Traces, From: w.From, Since: w.Since}
	for inbox, err := range walk.Slices(ctx, w.Client, within, traces, len(w.traces)) {
		if err != nil {
			return err
		}
		if w.book == nil {
			if err := w.restoreLetters(ctx, &inbox[0]); err != nil {
				return err
			}
			if w.book, err = w.readReceipts(ctx, &inbox[0]); err != nil {
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
	w.summary.Next = w.summary.Through + 1
	return nil
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
	for _, step := range []func() error{
		func() error { return w.outlet.PublishAlerts(ctx, b.alerts) },
		func() error { return b.insert(ctx, w.rows) },
		func() error { return w.Store.InsertVerdicts(ctx, w.verdicts) },
		func() error { return b.publishDead(ctx, w.outlet) },
		func() error { return w.outlet.PublishReceipts(ctx, b.receipts[:]) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	s.RowsWritten += b.inserted
	s.LettersWritten += len(b.dead)
	s.Alerts += len(b.alerts)
	for _, receipts := range b.receipts {
		s.ReceiptsWritten += len(receipts)
	}
	return nil
}

// judge decodes the messages of a slice, looks up what is stored about them, judges them again
// and collects what is missing.
func (w *replaying) judge(ctx context.Context, inbox []stream.Message) (err error) {
	var valid []store.TraceKey
	sequences := make([]uint64, len(inbox))
	for i := range inbox {
		sequences[i] = inbox[i].Sequence
		if w.refusals[i], err = w.workspace.admit(&w.traces[i], &inbox[i]); err != nil {
			return err
		}
		if w.refusals[i] == nil {
			valid = append(valid, store.KeyOf(&w.traces[i]))
		}
	}
	kept, err := w.Store.LookUpTraces(ctx, valid)
	if err != nil {
		return err
	}
	dead, err := w.Store.LookUpLetters(ctx, inbox[0].Received.Add(-clockSlack), sequences)
	if err != nil {
		return err
	}
	now := time.Now()
	w.workspace.warm(ctx, inbox)
	for i := range inbox {
		m := &inbox[i]
		w.batch.take(*m, now)
		w.summary.Messages++
		switch {
		case dead[store.LetterPlace{Sequence: m.Sequence, Digest: schema.DigestOf(wire.Kept(m.Data))}]:
			w.summary.DeadLetters++
		case w.refusals[i] != nil:
			w.batch.refuse(m, w.refusals[i])
		default:
			if err := w.trace(ctx, kept, m, &w.traces[i], now); err != nil {
				return err
			}
		}
	}
	return nil
}

// trace judges a message that is a valid trace, and collects what is missing for it.
func (w *replaying) trace(ctx context.Context, kept *store.TraceResults, m *stream.Message, t *schema.Trace, now time.Time) (err error) {
	meta := w.workspace.meta(t, m, w.created)
	if !meta.RetainUntil.IsZero() && meta.RetainUntil.Before(now) {
		w.summary.Expired++
		return nil
	}
	v := &w.verdict
	if _, err := w.workspace.verify(ctx, t, v, kept.Earliest(t.Digest, m.Received), now); err != nil {
		return err
	}
	meta.Redelivered = true // it may have been stored since the look-up
	stored, judged, receipted := kept.Stored(t.Digest, meta.Received), kept.Judged(v), w.book.has(meta)
	if stored && judged && receipted {
		w.summary.Unchanged++
		return nil
	}
	if !receipted {
		w.batch.addReceipt(t, meta)
	}
	switch {
	case !stored:
		w.batch.addRow(t, v, meta) // also the verdict, unless it exists
	case !judged:
		w.verdicts.Add(t, meta, v)
	}
	if !judged {
		w.summary.VerdictsWritten++
		w.batch.alerts, err = appendAlerts(w.batch.alerts, v)
	}
	kept.Note(meta.Received, v)
	return err
}

// restoreLetters inserts the dead letters that their stream has and the table lacks, of the
// messages from first on. A refused message without a letter in either gets one when it is
// judged.
func (w *replaying) restoreLetters(ctx context.Context, first *stream.Message) error {
	since := first.Received.Add(-clockSlack)
	for inbox, err := range walk.Slices(ctx, w.Client, stream.ConsumerConfig{Stream: stream.DeadLetters, Since: since}, w.letters, 0) {
		if err != nil {
			return err
		}
		var letters []store.DeadLetter
		var sequences []uint64
		for i := range inbox {
			if inbox[i].Subject == wire.MarkSubject {
				continue
			}
			letter, err := wire.ParseDeadLetter(inbox[i].Subject, inbox[i].Header, inbox[i].Data)
			if err != nil { // the sink skips it, too
				w.Log.Error("a message of stream DEADLETTER is not a dead letter", "sequence", inbox[i].Sequence, "error", err)
				continue
			}
			if letter.Sequence >= first.Sequence && letter.Sequence <= w.summary.Through {
				letters, sequences = append(letters, sink.LetterRow(&inbox[i], &letter)), append(sequences, letter.Sequence)
			}
		}
		if len(letters) == 0 {
			continue
		}
		kept, err := w.Store.LookUpLetters(ctx, since, sequences)
		if err != nil {
			return err
		}
		missing := slices.DeleteFunc(letters, func(l store.DeadLetter) bool {
			return kept[store.LetterPlace{Sequence: l.OriginSequence, Digest: schema.DigestOf(l.Raw)}]
		})
		if err := w.Store.InsertDeadLetters(ctx, missing); err != nil {
			return err
		}
		w.summary.LettersWritten += len(missing)
	}
	return nil
}

// receiptBook records which messages have a receipt: one bit for each.
type receiptBook struct {
	from  uint64
	bits  []uint64
	since time.Time // receipts of earlier messages may be gone from the stream
}

// clockSlack is how far the broker's time of a receipt or a dead letter may be before that of its
// message. In a cluster, streams have leaders on different machines.
const clockSlack = time.Minute

// readReceipts reads the receipts of the messages from first on.
func (w *replaying) readReceipts(ctx context.Context, first *stream.Message) (*receiptBook, error) {
	book := &receiptBook{from: first.Sequence, bits: make([]uint64, (w.summary.Through-first.Sequence)/64+1)}
	if w.receipts.Messages == 0 && w.receipts.LastSequence > 0 {
		book.since = w.receipts.LastReceived
	}
	within := stream.ConsumerConfig{Stream: stream.Receipts, Since: first.Received.Add(-clockSlack)}
	for inbox, err := range walk.Slices(ctx, w.Client, within, w.receipts, 0) {
		if err != nil {
			return nil, err
		}
		if inbox[0].Sequence == w.receipts.FirstSequence && inbox[0].Sequence > 1 {
			book.since = inbox[0].Received
		}
		for i := range inbox {
			receipts, _, err := wire.DecodeReceipts(inbox[i].Data, nil)
			if err != nil { // the exporter skips it, too
				w.Log.Error("a message of stream RECEIPTS cannot be decoded", "sequence", inbox[i].Sequence, "error", err)
				continue
			}
			for r := range receipts {
				if stream := receipts[r].Stream; stream != 0 && stream != w.created.UnixNano() {
					continue // of an earlier stream, which had the same sequences
				}
				sequence := receipts[r].Sequence
				if at := (sequence - book.from) / 64; sequence >= book.from && at < uint64(len(book.bits)) {
					book.bits[at] |= 1 << ((sequence - book.from) % 64)
				}
			}
		}
	}
	return book, nil
}

// has reports whether a message has a receipt, or may have one that the stream no longer holds.
func (r *receiptBook) has(m store.Meta) bool {
	at := m.Sequence - r.from
	return r.bits[at/64]&(1<<(at%64)) != 0 || m.Received.Before(r.since)
}
