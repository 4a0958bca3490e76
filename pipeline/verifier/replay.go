package verifier

import (
	"context"
	"log/slog"
	"time"

	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/messages"
	"github.com/plumbline/plumbline/pipeline/run"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// Replay judges again what the verifier has acknowledged, and writes what is
// missing: rows, verdicts of this engine version and today's cards, receipts, dead
// letters, and the alerts of verdicts that it writes. It may run while the pipeline
// works, and be broken off and repeated: what is there is looked up, not written
// again. It acknowledges nothing.
type Replay struct {
	Client   *stream.Client
	Store    *store.Store // as a user who may insert
	Policies *messages.Policies
	Rules    Rules // of the verifier
	Log      *slog.Logger

	From  uint64    // first sequence of stream TRACES; 0: its first message, or what Since says
	Since time.Time // without From: the first message that the broker took then or later
	To    uint64    // last sequence; 0, or beyond it: as far as the verifier has acknowledged

	Progress func(*ReplaySummary) // told after each slice; may be nil
}

// ReplaySummary counts messages of stream TRACES, and what was written of them.
type ReplaySummary struct {
	Through  uint64 `json:"through_sequence"` // the last one to be judged
	Next     uint64 `json:"next_sequence"`    // to go on from; beyond Through when all is done
	Messages int    `json:"messages"`

	Unchanged   int `json:"unchanged"`    // row, verdict and receipt were there
	DeadLetters int `json:"dead_letters"` // they are, and stay so
	Expired     int `json:"expired"`      // retention has removed them, or may: nothing is written

	RowsWritten     int `json:"rows_written"`
	VerdictsWritten int `json:"verdicts_written"`
	ReceiptsWritten int `json:"receipts_written"`
	LettersWritten  int `json:"dead_letters_written"`
	Alerts          int `json:"alerts_published"`
}

// Written tells how much was missing.
func (s *ReplaySummary) Written() int {
	return s.RowsWritten + s.VerdictsWritten + s.ReceiptsWritten + s.LettersWritten
}

// Run replays. The summary is of what is done, also where there is an error: then
// the same again from Next on is right.
func (r *Replay) Run(ctx context.Context) (ReplaySummary, error) {
	return r.run(ctx, r.Store, r.Client, replaySlice)
}

func (r *Replay) run(ctx context.Context, rows Rows, outlet Outlet, slice int) (ReplaySummary, error) {
	registry, err := cards.Open(ctx, r.Client, run.DefaultCardCacheBytes)
	if err != nil {
		return ReplaySummary{}, err
	}
	auditor, err := newAuditor(ctx, r.Client, r.Policies)
	if err != nil {
		return ReplaySummary{}, err
	}
	judging, err := newBench(registry, auditor, &r.Rules)
	if err != nil {
		return ReplaySummary{}, err
	}
	w := &replaying{
		Replay: r, rows: rows, outlet: outlet, bench: judging, slice: slice,
		in: intake{rows: r.Store.NewTraceBatch()}, verdicts: r.Store.NewVerdictBatch(),
	}
	err = registry.While(ctx, r.Log, w.run)
	return w.summary, err
}

// replaySlice is how many messages are looked up and written at once.
const replaySlice = 5000

// replaying is a replay at work.
type replaying struct {
	*Replay
	rows   Rows
	outlet Outlet
	bench  bench
	slice  int // most messages of one

	created  time.Time    // of TRACES
	receipts stream.State // of RECEIPTS, when the verifier had acknowledged everything to be judged
	letters  stream.State // of DEADLETTER, likewise
	book     *receiptBook // nil before the first slice

	looked
	in       intake
	verdicts *store.VerdictBatch // on traces that are stored
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

// bound finds how far to go. The verifier's ack floor is asked for first: receipts and
// dead letters of messages up to it are written.
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

// begin reads what the streams have of the messages from first on.
func (w *replaying) begin(ctx context.Context, first *stream.Message) (err error) {
	if err := w.restoreLetters(ctx, first); err != nil {
		return err
	}
	w.book, err = w.readReceipts(ctx, first)
	return err
}

// replay judges a slice again and writes what is missing of it. What an error leaves
// undone is not counted.
func (w *replaying) replay(ctx context.Context, inbox []stream.Message) error {
	before := w.summary
	err := w.judge(ctx, inbox)
	if err == nil {
		err = w.commit(ctx)
	}
	if err != nil {
		w.summary = before
	}
	w.in.reset()
	w.verdicts.Reset()
	return err
}

// commit writes what is missing. Alerts go first: once a verdict is there, the next
// replay has no reason to raise them.
func (w *replaying) commit(ctx context.Context) error {
	in, s := &w.in, &w.summary
	if len(in.alerts) > 0 {
		if err := w.outlet.PublishAlerts(ctx, in.alerts); err != nil {
			return err
		}
	}
	refused := len(in.dead)
	if err := in.insert(ctx, w.rows); err != nil {
		return err
	}
	if err := w.Store.InsertVerdicts(ctx, w.verdicts); err != nil {
		return err
	}
	for _, letter := range in.dead {
		if err := w.outlet.DeadLetter(ctx, letter); err != nil {
			return err
		}
	}
	if err := w.outlet.PublishReceipts(ctx, in.receipts[:]); err != nil {
		return err
	}
	unstorable := len(in.dead) - refused
	s.RowsWritten += in.rows.Len() - unstorable
	s.LettersWritten += len(in.dead)
	s.Alerts += len(in.alerts)
	for _, receipts := range in.receipts {
		s.ReceiptsWritten += len(receipts)
	}
	return nil
}
