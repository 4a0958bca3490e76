package verifier

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/pipeline/pipelinetest/sim"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// simulatedRows is the view of a process on the tables.
type simulatedRows struct {
	*simulation
	process *sim.Process
}

// insertLimit is how long an insert may take.
const insertLimit = 90 * time.Second

// InsertTraces stores traces, then verdicts.
func (r *simulatedRows) InsertTraces(ctx context.Context, batch *store.TraceBatch) error {
	o := sim.Operation{Name: "insert traces", Key: fmt.Sprint("from ", batch.ID(0).Sequence), Limit: insertLimit}
	n := batch.Len()
	var bad []store.BadRow
	err := r.process.Each(ctx, o, 2*n, func(i int) error {
		id := batch.ID(i % n)
		switch {
		case isUnstorable(r.traces.At(id.Sequence).Data):
			if i < n {
				bad = append(bad, store.BadRow{Index: i, Err: errors.New("a value that no column takes")})
			}
		case i < n:
			r.rows[id.Digest] = true
		default:
			r.judged(id)
		}
		return nil
	})
	if err == nil && len(bad) > 0 {
		return &store.BatchError{Rows: bad}
	}
	return err
}

// judged stores a verdict.
func (s *simulation) judged(id store.RowID) {
	if s.verdicts[id.Digest] == nil {
		s.verdicts[id.Digest] = map[schema.Digest]bool{}
	}
	s.verdicts[id.Digest][id.Card] = true
}

// LookUpTraces finds a trace by its verdicts. No receipt matters here: no card ends.
func (r *simulatedRows) LookUpTraces(ctx context.Context, traces []store.TraceKey) (*store.TraceResults, error) {
	found := store.NewTraceResults()
	err := r.lookUp(ctx, "traces", traces, func(v *schema.Verdict) { found.Note(v.Timestamp, v) })
	return found, err
}

func (r *simulatedRows) LookUpVerdicts(ctx context.Context, traces []store.TraceKey) (map[schema.Digest]*schema.Verdict, error) {
	found := map[schema.Digest]*schema.Verdict{}
	err := r.lookUp(ctx, "verdicts", traces, func(v *schema.Verdict) { found[store.VerdictID(&v.Metadata)] = v })
	return found, err
}

// lookUp calls found for each stored verdict on the traces.
func (r *simulatedRows) lookUp(ctx context.Context, what string, traces []store.TraceKey, found func(*schema.Verdict)) error {
	if len(traces) == 0 {
		return nil
	}
	return r.process.Do(ctx, sim.Operation{Name: "look up " + what, Key: traces[0].Digest.String()}, func() error {
		for i := range traces {
			for card := range r.verdicts[traces[i].Digest] {
				v := r.wantedOf(traces[i].Digest).verdict
				if v.Metadata.CardDigest != card { // its card was unknown
					v.Metadata.CardDigest, v.Violations, v.Findings = card, nil, nil
				}
				found(&v)
			}
		}
		return nil
	})
}

func (s *simulation) wantedOf(digest schema.Digest) *wanted {
	return &s.wanted[slices.IndexFunc(s.wanted, func(w wanted) bool { return w.trace != nil && w.trace.Digest == digest })]
}

func (r *simulatedRows) NewVerdictBatch() *store.VerdictBatch {
	return new(store.Store).NewVerdictBatch()
}

func (r *simulatedRows) InsertVerdicts(ctx context.Context, batch *store.VerdictBatch) error {
	o := sim.Operation{Name: "insert verdicts", Key: fmt.Sprint("from ", batch.ID(0).Sequence), Limit: insertLimit}
	return r.process.Each(ctx, o, batch.Len(), func(i int) error {
		r.judged(batch.ID(i))
		return nil
	})
}

func (r *simulatedRows) InsertCards(ctx context.Context, _ time.Time, list []*schema.Card) error {
	if len(list) == 0 {
		return nil
	}
	return r.process.Do(ctx, sim.Operation{Name: "insert cards", Key: list[0].CardID, Limit: insertLimit}, func() error {
		for _, card := range list {
			r.cardRows[card.CardID] = card.AgentID
		}
		return nil
	})
}

func (r *simulatedRows) InsertCardPosition(ctx context.Context, _ time.Time, revision uint64) error {
	return r.process.Do(ctx, sim.Operation{Name: "insert card position", Key: fmt.Sprint(revision), Limit: insertLimit}, func() error {
		r.position = revision
		return nil
	})
}

func (r *simulatedRows) CardPosition(ctx context.Context, _ time.Time) (revision, cards uint64, err error) {
	err = r.process.Do(ctx, sim.Operation{Name: "select card position"}, func() error {
		revision, cards = r.position, uint64(len(r.cardRows))
		return nil
	})
	return revision, cards, err
}

func (r *simulatedRows) RegisteredCards(ctx context.Context, agents []string, take func(agentID, cardID string, retentionDays uint32)) error {
	var found [][2]string
	err := r.process.Do(ctx, sim.Operation{Name: "select cards", Key: strings.Join(agents, " ")}, func() error {
		for _, card := range slices.Sorted(maps.Keys(r.cardRows)) {
			if agent := r.cardRows[card]; slices.Contains(agents, agent) {
				found = append(found, [2]string{agent, card})
			}
		}
		return nil
	})
	for _, row := range found {
		take(row[0], row[1], 0)
	}
	return err
}

func (r *simulatedRows) InsertRevocations(context.Context, []schema.Revocation) error { return nil }

func (r *simulatedRows) TracesOfRevokedCards(context.Context, []schema.Revocation, *store.StoredTrace, int) iter.Seq2[*store.StoredTrace, error] {
	return func(func(*store.StoredTrace, error) bool) {}
}

// TracesOfUnknownCards yields the traces that have a row and no verdict by a card.
func (r *simulatedRows) TracesOfUnknownCards(ctx context.Context, cardIDs []string, _ int) iter.Seq2[*store.StoredTrace, error] {
	return func(yield func(*store.StoredTrace, error) bool) {
		var found []*store.StoredTrace
		o := sim.Operation{Name: "select traces of unknown cards", Key: strings.Join(cardIDs, " ")}
		err := r.process.Do(ctx, o, func() error {
			found = r.unjudged(cardIDs)
			return nil
		})
		if err != nil {
			yield(nil, err)
			return
		}
		for _, trace := range found {
			if !yield(trace, nil) {
				return
			}
		}
	}
}

// unjudged returns the stored traces that name one of the cards and have no verdict by one.
func (s *simulation) unjudged(cardIDs []string) (found []*store.StoredTrace) {
	seen := map[schema.Digest]bool{}
	for i := range s.wanted {
		trace := s.wanted[i].trace
		if trace == nil || seen[trace.Digest] || !s.rows[trace.Digest] || !slices.Contains(cardIDs, trace.CardID) {
			continue
		}
		seen[trace.Digest] = true
		if verdicts := s.verdicts[trace.Digest]; len(verdicts) == 1 && verdicts[schema.Digest{}] {
			found = append(found, trace)
		}
	}
	return found
}
