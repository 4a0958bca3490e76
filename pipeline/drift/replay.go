package drift

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
)

// Replay runs drift again over stream TRACES, from its first message on, and compares the result
// with what is stored. It makes two passes. Only the second writes what is missing, and only for
// series without any difference. Replay reads and writes no states and acks nothing, so it may
// run while the stage works, and may be interrupted and repeated.
type Replay struct {
	Rules  Rules // the rules of the running stage
	Client *stream.Client
	Store  *store.Store // with a user who may insert
	Log    *slog.Logger

	Agent string    // only this agent; empty: all
	From  uint64    // compare and write the results of messages from this sequence on
	Since time.Time // and only of messages from this broker time on
	To    uint64    // up to this sequence; 0, or beyond it: as far as the stage has acked

	Progress func(messages int) // called after each slice of either pass; optional
}

// ReplaySummary counts the results within the bounds, and how many of them were written.
type ReplaySummary struct {
	Messages  int      `json:"messages"`  // of the agent's partition, or of all partitions
	Points    int      `json:"points"`    // computed points, except those of expired traces
	Unchanged int      `json:"unchanged"` // points that are stored with the same values
	Differing []Series `json:"differing"` // series with a stored point of another value; nothing is written for them

	PointsWritten    int `json:"points_written"`
	AlertsWritten    int `json:"alerts_written"` // and published
	BaselinesWritten int `json:"baselines_written"`
}

// Series is a series with a stored point that differs from the computed one.
type Series struct {
	AgentID  string `json:"agent_id"`
	CardID   string `json:"card_id"`
	TraceID  string `json:"trace_id"` // of the first such point
	Sequence uint64 `json:"sequence"`
	What     string `json:"what"`
}

// ErrForgotten says that the stream no longer holds its first messages. Series begin with those.
var ErrForgotten = errors.New("stream TRACES no longer holds its first messages: drift follows from them")

// Run replays. It is safe to retry after an error.
func (r *Replay) Run(ctx context.Context) (*ReplaySummary, error) {
	pins, err := r.Rules.pins()
	if err != nil {
		return nil, err
	}
	registry, err := cards.Open(ctx, r.Client, config.DefaultCardCacheBytes)
	if err != nil {
		return nil, err
	}
	w := &replaying{Replay: r, pins: pins, registry: registry, differing: map[seriesKey]bool{}}
	w.summary.Differing = []Series{}
	if err := w.bound(ctx); err != nil {
		return nil, err
	}
	err = registry.While(ctx, r.Log, func(ctx context.Context) error {
		if err := w.pass(ctx, w.compare); err != nil {
			return err
		}
		return w.pass(ctx, w.write)
	})
	return &w.summary, err
}

// replaying is the state of a replay.
type replaying struct {
	*Replay
	pins     Pins
	registry *cards.Registry

	state  stream.State // of TRACES
	floors [subject.Partitions]uint64

	begin, end [subject.Partitions]time.Time // broker times of the messages within the bounds; zero where none was read yet
	differing  map[seriesKey]bool
	summary    ReplaySummary
}

// bound determines how far to compare: what a partition's worker has acked is stored.
func (w *replaying) bound(ctx context.Context) (err error) {
	for p := range w.floors {
		progress, err := w.Client.ConsumerProgress(ctx, stream.Traces, stream.DriftConsumer(p))
		if err != nil {
			return err
		}
		w.floors[p] = progress.AckFloor
		if w.To > 0 {
			w.floors[p] = min(w.To, progress.AckFloor)
		}
	}
	if w.state, err = w.Client.StreamState(ctx, stream.Traces); err != nil {
		return err
	}
	if w.state.FirstSequence > 1 {
		return fmt.Errorf("%w (it begins at sequence %d)", ErrForgotten, w.state.FirstSequence)
	}
	return nil
}

// pass folds the whole stream, and passes the output within the bounds to take.
func (w *replaying) pass(ctx context.Context, take func(context.Context, *batch) error) error {
	w.begin, w.end = [subject.Partitions]time.Time{}, [subject.Partitions]time.Time{}
	w.summary.Messages = 0
	source, err := w.Client.ReadThrough(ctx, stream.ConsumerConfig{Stream: stream.Traces}, w.state.LastSequence, w.state)
	if err != nil {
		return err
	}
	defer source.Close()
	folds := w.folds()
	reducer := newReducer(w.registry)
	for {
		inbox, err := source.Next(ctx, 0)
		if err != nil {
			return err
		}
		for i := range inbox {
			m := &inbox[i]
			if folds[m.Partition] == nil {
				continue
			}
			w.note(m)
			e, err := reducer.reduce(ctx, *m)
			if err != nil {
				return err
			}
			folds[m.Partition].receive(e)
		}
		if len(inbox) == 0 {
			return w.batches(ctx, folds, true, take)
		}
		if err := w.batches(ctx, folds, false, take); err != nil {
			return err
		}
	}
}

// folds returns a fold for each requested partition.
func (w *replaying) folds() (folds [subject.Partitions]*fold) {
	for p := range folds {
		if w.Agent == "" || p == subject.Partition(w.Agent) {
			folds[p] = newFold(p, w.state.Created, &w.Rules, w.pins, w.registry.RetainUntil)
		}
	}
	return folds
}

// note counts a message and records which broker times are within the bounds: the messages of a
// partition are ordered by time.
func (w *replaying) note(m *stream.Message) {
	w.summary.Messages++
	within := m.Sequence >= w.From && !m.Received.Before(w.Since)
	if within && w.begin[m.Partition].IsZero() {
		w.begin[m.Partition] = m.Received
	}
	if m.Sequence <= w.floors[m.Partition] {
		w.end[m.Partition] = m.Received
	}
}

// afterAll makes all traces due. Those that the stage has not applied yet are out of bounds.
const afterAll = 100 * 365 * 24 * time.Hour

// batches passes the output of the folds to take; with last, including the traces that wait.
func (w *replaying) batches(ctx context.Context, folds [subject.Partitions]*fold, last bool, take func(context.Context, *batch) error) error {
	for _, f := range folds {
		if f == nil {
			continue
		}
		if last {
			f.idle(afterAll)
		}
		y, err := f.take()
		if err != nil {
			return err
		}
		w.cut(f.partition, &y)
		if len(y.points) == 0 {
			continue
		}
		if err := take(ctx, &y); err != nil {
			return err
		}
	}
	if w.Progress != nil {
		w.Progress(w.summary.Messages)
	}
	return nil
}
