package drift

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/walk"
	"github.com/plumbline/plumbline/schema"
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
	To    uint64    // up to this sequence; 0, or beyond it: as far as the stage is done

	Progress func(messages int) // called after each slice of either pass; optional
}

// ReplaySummary counts the results within the bounds, and how many of them were written.
type ReplaySummary struct {
	Messages  int      `json:"messages"`  // of the agent's partition, or of all partitions
	Points    int      `json:"points"`    // computed points, except those of expired traces
	Unchanged int      `json:"unchanged"` // points that are stored with the same values
	Differing []Series `json:"differing"` // series with a stored point of another value; nothing is written for them

	PointsWritten    int `json:"points_written"`
	AlertsWritten    int `json:"alerts_written"` // events of alerts, and published
	LoopsWritten     int `json:"loops_written"`  // alerts about loops, and published
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

// errForgotten says that the stream no longer holds its first messages. Series begin with those.
var errForgotten = errors.New("stream TRACES no longer holds its first messages: drift cannot be computed without them")

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
	if w.floors, err = walk.Measured(ctx, r.Client); err != nil { // what a partition's worker is done with is stored
		return nil, err
	}
	if w.state, err = r.Client.StreamState(ctx, stream.Traces); err != nil {
		return nil, err
	}
	if w.state.FirstSequence > 1 {
		return nil, fmt.Errorf("%w (it begins at sequence %d)", errForgotten, w.state.FirstSequence)
	}
	err = registry.While(ctx, r.Log, func(ctx context.Context) error {
		if err := w.pass(ctx, w.compare); err != nil {
			return err
		}
		return w.pass(ctx, w.write)
	})
	return &w.summary, err
}

type replaying struct {
	*Replay
	pins     Pins
	registry *cards.Registry

	state  stream.State               // of TRACES
	floors [subject.Partitions]uint64 // the stage is done with every message of the partition up to this sequence

	begin, end [subject.Partitions]time.Time // broker times of the messages within the bounds; zero where none was read yet
	differing  map[seriesKey]bool
	summary    ReplaySummary
}

// traceMark is the first half of a trace's digest.
type traceMark [16]byte

// pass folds the whole stream, and passes the output within the bounds to take.
func (w *replaying) pass(ctx context.Context, take func(context.Context, *batch) error) error {
	w.begin, w.end = [subject.Partitions]time.Time{}, [subject.Partitions]time.Time{}
	w.summary.Messages = 0
	var folds [subject.Partitions]*fold // of the requested partitions
	for p := range folds {
		if w.Agent == "" || p == subject.Partition(w.Agent) {
			folds[p] = newFold(p, w.state.Created, &w.Rules, w.pins, w.registry.RetainUntil)
		}
	}
	reducer, seen := newReducer(w.registry), map[traceMark]struct{}{}
	for inbox, err := range walk.Slices(ctx, w.Client, stream.ConsumerConfig{Stream: stream.Traces}, w.state, 0) {
		if err != nil {
			return err
		}
		for i := range inbox {
			m := &inbox[i]
			if folds[m.Partition] == nil {
				continue
			}
			w.summary.Messages++
			if m.Sequence >= w.From && !m.Received.Before(w.Since) && w.begin[m.Partition].IsZero() { // a partition is ordered by time
				w.begin[m.Partition] = m.Received
			}
			if m.Sequence <= w.floors[m.Partition] && (w.To == 0 || m.Sequence <= w.To) {
				w.end[m.Partition] = m.Received
			}
			e, err := reducer.reduce(ctx, *m)
			if err != nil {
				return err
			}
			if !e.refused && e.ending == nil {
				trace := traceMark(e.sample.Digest[:])
				_, e.copied = seen[trace]
				seen[trace] = struct{}{}
			}
			folds[m.Partition].receive(e)
		}
		if err := w.batches(ctx, folds, take); err != nil {
			return err
		}
	}
	for _, f := range folds {
		if f != nil {
			f.idle(afterAll)
		}
	}
	return w.batches(ctx, folds, take)
}

// afterAll makes all traces due. Those that the stage has not applied yet are out of bounds.
const afterAll = 100 * 365 * 24 * time.Hour

// batches passes the output of the folds within the bounds to take.
func (w *replaying) batches(ctx context.Context, folds [subject.Partitions]*fold, take func(context.Context, *batch) error) error {
	for _, f := range folds {
		if f == nil {
			continue
		}
		var out batch
		if err := f.take(&out, true); err != nil {
			return err
		}
		begin, end, now := w.begin[f.partition], w.end[f.partition], time.Now()
		out.drop(func(agent, _ string, received time.Time) bool { // outside the bounds, of another agent, or expired
			until := w.registry.RetainUntil(agent, received)
			expired := !until.IsZero() && until.Before(now)
			return expired || w.Agent != "" && agent != w.Agent || begin.IsZero() || received.Before(begin) || received.After(end)
		})
		if len(out.points) == 0 {
			continue
		}
		if err := take(ctx, &out); err != nil {
			return err
		}
	}
	if w.Progress != nil {
		w.Progress(w.summary.Messages)
	}
	return nil
}

// drop removes the results of some series and messages.
func (b *batch) drop(out func(agent, card string, received time.Time) bool) {
	b.points = slices.DeleteFunc(b.points, func(p store.DriftPoint) bool { return out(p.AgentID, p.CardID, p.Received) })
	b.alerts = slices.DeleteFunc(b.alerts, func(a store.DriftAlert) bool { return out(a.AgentID, a.CardID, a.Received) })
	b.baselines = slices.DeleteFunc(b.baselines, func(b store.DriftBaseline) bool { return out(b.AgentID, b.CardID, b.Received) })
	b.loops = slices.DeleteFunc(b.loops, func(l store.LoopAlert) bool { return out(l.AgentID, l.CardID, l.Received) })
}

// compare is the first pass: it finds the series that differ.
func (w *replaying) compare(ctx context.Context, b *batch) error {
	stored, err := w.Store.LookUpDriftPoints(ctx, b.points)
	if err != nil {
		return err
	}
	for i := range b.points {
		p := &b.points[i]
		w.summary.Points++
		s := stored[p.Key()]
		if s == nil {
			stored[p.Key()] = p // a later copy of the trace is compared with this point
			continue
		}
		what := contradiction(s, p)
		if what == "" {
			w.summary.Unchanged++
			continue
		}
		series := seriesKey{AgentID: p.AgentID, CardID: p.CardID}
		if !w.differing[series] {
			w.differing[series] = true
			w.summary.Differing = append(w.summary.Differing,
				Series{AgentID: p.AgentID, CardID: p.CardID, TraceID: p.TraceID, Sequence: p.Sequence, What: what})
		}
	}
	return nil
}

// sameSimilarity is the tolerance for equal similarities. Storing a state may change them
// slightly.
const sameSimilarity = 1e-9

// contradiction returns how a stored point differs from the computed one. It returns "" where
// they agree, and where the stored point is from an earlier copy of the trace.
func contradiction(stored, computed *store.DriftPoint) string {
	switch {
	case stored.Sequence != computed.Sequence && !stored.Received.After(computed.Received):
		return ""
	case stored.Mode != computed.Mode || stored.Threshold != computed.Threshold:
		return fmt.Sprintf("stored under mode %s, threshold %g; computed under %s, %g", stored.Mode, stored.Threshold, computed.Mode, computed.Threshold)
	case stored.Status != computed.Status || stored.Streak != computed.Streak:
		return fmt.Sprintf("stored as %s, streak %d; computed %s, %d", stored.Status, stored.Streak, computed.Status, computed.Streak)
	case stored.BaselineID != computed.BaselineID:
		return fmt.Sprintf("stored against baseline %s; computed against %s", stored.BaselineID, computed.BaselineID)
	case (stored.Similarity == nil) != (computed.Similarity == nil),
		stored.Similarity != nil && math.Abs(*stored.Similarity-*computed.Similarity) > sameSimilarity:
		return "the stored similarity differs from the computed one"
	}
	return ""
}

// write is the second pass: it writes what is missing in the series that do not differ. Alert
// messages are published before their rows are inserted, because the next replay publishes only
// alerts without a row.
func (w *replaying) write(ctx context.Context, b *batch) error {
	b.drop(func(agent, card string, _ time.Time) bool {
		return w.differing[seriesKey{AgentID: agent, CardID: card}]
	})
	if len(b.points) == 0 {
		return nil
	}
	points, err := w.Store.LookUpDriftPoints(ctx, b.points)
	if err != nil {
		return err
	}
	b.points = slices.DeleteFunc(b.points, func(p store.DriftPoint) bool {
		stored := points[p.Key()] != nil
		points[p.Key()] = &p
		return stored
	})
	alerts, err := w.Store.LookUpDriftAlerts(ctx, b.alerts)
	if err != nil {
		return err
	}
	b.alerts = slices.DeleteFunc(b.alerts, func(a store.DriftAlert) bool { return alerts[a.Key()] })
	ids := make([]schema.Digest, len(b.loops))
	for i := range ids {
		ids[i] = b.loops[i].AlertID
	}
	loops, err := w.Store.LookUpLoopAlerts(ctx, ids)
	if err != nil {
		return err
	}
	b.loops = slices.DeleteFunc(b.loops, func(l store.LoopAlert) bool { return loops[l.AlertID] })
	ids = make([]schema.Digest, len(b.baselines))
	for i := range ids {
		ids[i] = b.baselines[i].BaselineID
	}
	baselines, err := w.Store.LookUpDriftBaselines(ctx, ids)
	if err != nil {
		return err
	}
	b.baselines = slices.DeleteFunc(b.baselines, func(b store.DriftBaseline) bool { return baselines[b.BaselineID] })
	for _, step := range []func() error{
		func() error { return publishAlerts(ctx, w.Client, b.alerts) },
		func() error { return publishLoops(ctx, w.Client, b.loops) },
		func() error { return w.Store.InsertDriftBaselines(ctx, b.baselines) },
		func() error { return w.Store.InsertDriftPoints(ctx, b.points) },
		func() error { return w.Store.InsertDriftAlerts(ctx, b.alerts) },
		func() error { return w.Store.InsertLoopAlerts(ctx, b.loops) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	w.summary.BaselinesWritten += len(b.baselines)
	w.summary.PointsWritten += len(b.points)
	w.summary.AlertsWritten += len(b.alerts)
	w.summary.LoopsWritten += len(b.loops)
	return nil
}
