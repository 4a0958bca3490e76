package drift

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// cut removes from a batch what is outside the bounds, belongs to another agent than the
// requested one, or has expired.
func (w *replaying) cut(partition int, b *batch) {
	begin, end, now := w.begin[partition], w.end[partition], time.Now()
	out := func(agent string, received time.Time) bool {
		until := w.registry.RetainUntil(agent, received)
		expired := !until.IsZero() && until.Before(now)
		return expired || w.Agent != "" && agent != w.Agent || begin.IsZero() || received.Before(begin) || received.After(end)
	}
	b.points = slices.DeleteFunc(b.points, func(p store.DriftPoint) bool { return out(p.AgentID, p.Received) })
	b.alerts = slices.DeleteFunc(b.alerts, func(a store.DriftAlert) bool { return out(a.AgentID, a.Received) })
	b.baselines = slices.DeleteFunc(b.baselines, func(b store.DriftBaseline) bool { return out(b.AgentID, b.Received) })
}

// compare is the first pass: it finds the series that differ.
func (w *replaying) compare(ctx context.Context, b *batch) error {
	stored, err := w.Store.KeptDriftPoints(ctx, b.points)
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
		series := seriesKey{p.AgentID, p.CardID}
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
func contradiction(stored, found *store.DriftPoint) string {
	switch {
	case stored.Sequence != found.Sequence && !stored.Received.After(found.Received):
		return ""
	case stored.Mode != found.Mode || stored.Threshold != found.Threshold:
		return fmt.Sprintf("stored under mode %s, threshold %g; found under %s, %g", stored.Mode, stored.Threshold, found.Mode, found.Threshold)
	case stored.Status != found.Status || stored.Streak != found.Streak:
		return fmt.Sprintf("stored as %s, %d in a row; found %s, %d", stored.Status, stored.Streak, found.Status, found.Streak)
	case stored.BaselineID != found.BaselineID:
		return fmt.Sprintf("stored against baseline %s; found against %s", stored.BaselineID, found.BaselineID)
	case (stored.Similarity == nil) != (found.Similarity == nil),
		stored.Similarity != nil && math.Abs(*stored.Similarity-*found.Similarity) > sameSimilarity:
		return "the similarity is another"
	}
	return ""
}

// write is the second pass: it writes what is missing in the series that do not differ. Alert
// messages are published before their rows are inserted, because the next replay publishes only
// alerts without a row.
func (w *replaying) write(ctx context.Context, b *batch) error {
	b.points = slices.DeleteFunc(b.points, func(p store.DriftPoint) bool { return w.differing[seriesKey{p.AgentID, p.CardID}] })
	b.alerts = slices.DeleteFunc(b.alerts, func(a store.DriftAlert) bool { return w.differing[seriesKey{a.AgentID, a.CardID}] })
	b.baselines = slices.DeleteFunc(b.baselines, func(b store.DriftBaseline) bool { return w.differing[seriesKey{b.AgentID, b.CardID}] })
	if len(b.points) == 0 {
		return nil
	}
	if err := w.leaveMissing(ctx, b); err != nil {
		return err
	}
	if err := publishAlerts(ctx, w.Client, b.alerts); err != nil {
		return err
	}
	if err := w.Store.InsertDriftBaselines(ctx, b.baselines); err != nil {
		return err
	}
	if err := w.Store.InsertDriftPoints(ctx, b.points); err != nil {
		return err
	}
	if err := w.Store.InsertDriftAlerts(ctx, b.alerts); err != nil {
		return err
	}
	w.summary.BaselinesWritten += len(b.baselines)
	w.summary.PointsWritten += len(b.points)
	w.summary.AlertsWritten += len(b.alerts)
	return nil
}

// leaveMissing removes from a batch what is already stored.
func (w *replaying) leaveMissing(ctx context.Context, b *batch) error {
	points, err := w.Store.KeptDriftPoints(ctx, b.points)
	if err != nil {
		return err
	}
	b.points = slices.DeleteFunc(b.points, func(p store.DriftPoint) bool {
		stored := points[p.Key()] != nil
		points[p.Key()] = &p
		return stored
	})
	alerts, err := w.Store.KeptDriftAlerts(ctx, idsOf(b.alerts, func(a *store.DriftAlert) schema.Digest { return a.AlertID }))
	if err != nil {
		return err
	}
	b.alerts = slices.DeleteFunc(b.alerts, func(a store.DriftAlert) bool { return alerts[a.AlertID] })
	baselines, err := w.Store.KeptDriftBaselines(ctx, idsOf(b.baselines, func(b *store.DriftBaseline) schema.Digest { return b.BaselineID }))
	if err != nil {
		return err
	}
	b.baselines = slices.DeleteFunc(b.baselines, func(b store.DriftBaseline) bool { return baselines[b.BaselineID] })
	return nil
}

func idsOf[T any](rows []T, id func(*T) schema.Digest) []schema.Digest {
	ids := make([]schema.Digest, len(rows))
	for i := range rows {
		ids[i] = id(&rows[i])
	}
	return ids
}
