package exporter

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/plumbline/plumbline/aap/session"
	"github.com/plumbline/plumbline/pipeline/pipelinetest/sim"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// simulatedRows is the view of a simulated process on the tables.
type simulatedRows struct {
	*simulation
	process *sim.Process
}

// rowLimit is how long a query or an insert may take.
const rowLimit = 90 * time.Second

func (r *simulatedRows) SessionTraces(ctx context.Context, q store.SessionQuery) iter.Seq2[*store.StoredTrace, error] {
	if len(q.Sessions) == 0 {
		return func(func(*store.StoredTrace, error) bool) {}
	}
	first := slices.MinFunc(q.Sessions, func(a, b store.SessionKey) int {
		return cmp.Or(cmp.Compare(a.AgentID, b.AgentID), cmp.Compare(a.SessionID, b.SessionID))
	})
	return r.query(ctx, "select sessions", fmt.Sprint("from ", first), func(t *store.StoredTrace) bool {
		return slices.Contains(q.Sessions, store.SessionKey{AgentID: t.AgentID, SessionID: t.SessionID})
	})
}

func (r *simulatedRows) PartTraces(ctx context.Context, q store.PartQuery) iter.Seq2[*store.StoredTrace, error] {
	return r.query(ctx, "select part", fmt.Sprint(q.Session, q.After), func(t *store.StoredTrace) bool {
		return t.AgentID == q.Session.AgentID && t.SessionID == q.Session.SessionID &&
			((q.Stream == 0 || t.StreamCreated.UnixNano() == q.Stream) && t.Sequence > q.After && t.Sequence <= q.Cut || slices.Contains(q.Digests, t.Digest.String()))
	})
}

// query yields copies of the rows that match.
func (r *simulatedRows) query(ctx context.Context, name, key string, matches func(*store.StoredTrace) bool) iter.Seq2[*store.StoredTrace, error] {
	return func(yield func(*store.StoredTrace, error) bool) {
		var found []*store.StoredTrace
		err := r.process.Do(ctx, sim.Operation{Name: name, Key: key, Limit: rowLimit}, func() error {
			found = r.stored(matches)
			return nil
		})
		if err != nil {
			yield(nil, err)
			return
		}
		for _, row := range found {
			if !yield(row, nil) {
				return
			}
		}
	}
}

// stored returns copies of the rows that match, with their verdicts, ordered by time.
func (s *simulation) stored(matches func(*store.StoredTrace) bool) (found []*store.StoredTrace) {
	for _, traces := range s.sessions {
		for _, t := range traces {
			if t.inserted && matches(&t.row) {
				row, verdict := t.row, t.verdict
				row.Verdict = &verdict
				found = append(found, &row)
			}
		}
	}
	slices.SortFunc(found, func(a, b *store.StoredTrace) int { return a.EventTime.Compare(b.EventTime) })
	return found
}

func (r *simulatedRows) NumberedTraces(_ context.Context, questions []store.NumberQuestion) ([][]session.NumberedTrace, error) {
	return make([][]session.NumberedTrace, len(questions)), nil
}

func (r *simulatedRows) PrecedingNumbers(_ context.Context, questions []store.NumberQuestion) ([]*session.NumberedTrace, error) {
	return make([]*session.NumberedTrace, len(questions)), nil
}

func (r *simulatedRows) PriorTraces(context.Context, []string) ([]session.PriorTrace, error) {
	return nil, nil
}

// insert stores rows one by one, so a failed insert may have stored some of them.
func insert[T any](ctx context.Context, r *simulatedRows, table string, rows []T, key func(*T) string, store func(*T)) error {
	o := sim.Operation{Name: "insert into " + table, Limit: rowLimit}
	return sim.EachOf(ctx, r.process, o, rows, key, func(row *T) error {
		store(row)
		return nil
	})
}

func (r *simulatedRows) InsertSessionVerdicts(ctx context.Context, verdicts []*schema.SessionVerdict) error {
	key := func(v **schema.SessionVerdict) string {
		return fmt.Sprintf("%s %s %d", (*v).AgentID, (*v).SessionID, (*v).Part)
	}
	return insert(ctx, r, "session_verdicts", verdicts, key, func(v **schema.SessionVerdict) { r.tables.verdicts[key(v)] = true })
}

func (r *simulatedRows) InsertBundles(ctx context.Context, bundles []store.Bundle) error {
	key := func(b *store.Bundle) string { return fmt.Sprintf("%s %s %d", b.AgentID, b.SessionID, b.Part) }
	return insert(ctx, r, "bundles", bundles, key, func(b *store.Bundle) { r.tables.bundles[b.SHA256.String()] = true })
}

func (r *simulatedRows) InsertSessions(ctx context.Context, sessions []store.Session) error {
	key := func(s *store.Session) string { return s.AgentID + " " + s.SessionID }
	return insert(ctx, r, "sessions", sessions, key, func(s *store.Session) {
		key := store.SessionKey{AgentID: s.AgentID, SessionID: s.SessionID}
		if r.tables.sessions[key].Version <= s.Version {
			r.tables.sessions[key] = *s
		}
	})
}

func (r *simulatedRows) InsertSealRuns(ctx context.Context, runs []store.SealRun) error {
	key := func(run *store.SealRun) string { return fmt.Sprintf("%s %s %d", run.AgentID, run.SessionID, run.Cut) }
	return insert(ctx, r, "seal_runs", runs, key, func(run *store.SealRun) {
		if run.Outcome != outcomeSealed {
			r.w.Wrong("session %q of agent %q is held: %s", run.SessionID, run.AgentID, run.Reason)
		}
		r.tables.runs[run.SHA256] = true
	})
}

// EarlierBundles finds none: the simulated broker's clock is not set back.
func (r *simulatedRows) EarlierBundles(context.Context, store.EarlierQuery) ([]store.EarlierBundle, error) {
	return nil, nil
}

func (r *simulatedRows) InsertBundleCopies(context.Context, []store.BundleCopy) error { return nil }
