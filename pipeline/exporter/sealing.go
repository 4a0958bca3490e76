package exporter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/seal"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// Bucket is bucket seals (stream.Bucket).
type Bucket interface {
	Get(ctx context.Context, key string) (value []byte, revision uint64, err error)
	Create(ctx context.Context, key string, value []byte) (revision uint64, err error)
	Update(ctx context.Context, key string, value []byte, last uint64) (revision uint64, err error)
	Put(ctx context.Context, key string, value []byte) (revision uint64, err error)
}

// Cards is the registry (cards.Registry).
type Cards interface {
	Lookup(ctx context.Context, cardID string) (*cards.Card, error)
}

// candidate is a session that is due, and why.
type candidate struct {
	session *session
	reason  string
}

// job is one part of a session on its way into a bundle.
type job struct {
	candidate
	part     seal.Part
	revision uint64 // of the record in the bucket; 0: there is none
	fixed    bool   // the plan is in the bucket
	began    time.Time
	bundle   *aivs.Bundle
	redacted int64
	differs  seal.Difference
	failed   error // why no bundle can be made of rows that are whole
	repeated bool  // every trace is in an earlier part already: there is nothing to seal
}

// spread is how many sessions of a group are worked on at a time.
const spread = 4

// seal takes a group of sessions through every step. What fails is repeated
// until it succeeds or ctx ends; a session whose rows differ is held.
func (e *exporter) seal(ctx context.Context, group []candidate, floor uint64, created time.Time) error {
	if len(group) == 0 {
		return nil
	}
	return e.env.Retry.Do(ctx, "seal sessions", func() error {
		jobs, err := e.plan(ctx, group, floor, created)
		if err != nil || len(jobs) == 0 {
			return err
		}
		if err := e.readTraces(ctx, jobs); err != nil {
			return err
		}
		if err := each(ctx, jobs, e.commit); err != nil {
			return err
		}
		if err := e.record(ctx, told(jobs)); err != nil {
			return err
		}
		if err := each(ctx, jobs, e.finish); err != nil {
			return err
		}
		e.forget(jobs)
		return nil
	})
}

// told are the jobs of which there is something to tell.
func told(jobs []*job) []*job {
	return slices.DeleteFunc(slices.Clone(jobs), func(j *job) bool { return j.repeated })
}

// each does a step for every job, some at a time.
func each(ctx context.Context, jobs []*job, step func(context.Context, *job) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(spread)
	for _, j := range jobs {
		group.Go(func() error {
			if err := step(ctx, j); err != nil {
				return fmt.Errorf("session %q of agent %q: %w", j.part.SessionID, j.part.AgentID, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// plan finds for each session the plan that is fixed already, or makes one; a
// session of which nothing is left to seal leaves the index.
func (e *exporter) plan(ctx context.Context, group []candidate, floor uint64, created time.Time) ([]*job, error) {
	jobs := make([]*job, len(group))
	for i, c := range group {
		jobs[i] = &job{candidate: c, began: time.Now()}
		jobs[i].part.AgentID, jobs[i].part.SessionID = c.session.key.AgentID, c.session.key.SessionID
	}
	err := each(ctx, jobs, func(ctx context.Context, j *job) error { return e.planOne(ctx, j, floor, created) })
	if err != nil {
		return nil, err
	}
	kept := jobs[:0]
	for _, j := range jobs {
		if j.part.Plan.Part > 0 {
			kept = append(kept, j)
		} else if len(j.session.receipts) == 0 {
			delete(e.index.sessions, j.session.key)
		}
	}
	return kept, nil
}

func (e *exporter) planOne(ctx context.Context, j *job, floor uint64, created time.Time) error {
	last, err := e.lastRecord(ctx, j)
	if err != nil {
		return err
	}
	covered := last.Covered(created)
	s := j.session
	s.settle(covered)
	if last.State == seal.Planned && last.StreamCreated.Equal(created) {
		j.part.Plan, j.fixed = last, true
		return nil
	}
	n := min(s.until(floor), e.cfg.RotateRows)
	if n == 0 || n < e.cfg.RotateRows && len(s.receipts) >= e.cfg.RotateRows {
		return nil // nothing, or not yet the whole part
	}
	now := time.Now().Unix()
	j.part.Plan = seal.Record{
		State: seal.Planned, Part: last.Part + 1, StreamCreated: created,
		After: covered, Cut: s.receipts[n-1].Sequence, Traces: int64(n),
		ExportedAt: now, KeyID: e.keyID, Previous: last.SHA256,
		LastPart: n == len(s.receipts) && j.reason != seal.ReasonRotation, Reason: j.reason,
		File: seal.File(s.key.AgentID, s.key.SessionID, now),
	}
	return nil
}

func (e *exporter) lastRecord(ctx context.Context, j *job) (seal.Record, error) {
	value, revision, err := e.seals.Get(ctx, seal.Key(j.part.AgentID, j.part.SessionID))
	if errors.Is(err, stream.ErrNotFound) {
		return seal.Record{}, nil
	}
	if err != nil {
		return seal.Record{}, err
	}
	j.revision = revision
	return seal.Decode(value)
}

// readTraces reads the rows of all jobs with one query.
func (e *exporter) readTraces(ctx context.Context, jobs []*job) error {
	var query store.SessionQuery
	byKey := make(map[store.SessionKey]*job, len(jobs))
	for _, j := range jobs {
		query.Sessions = append(query.Sessions, j.session.key)
		byKey[j.session.key] = j
		for _, r := range j.session.receipts {
			if query.From.IsZero() || r.EventTime.Before(query.From) {
				query.From = r.EventTime
			}
			if r.EventTime.After(query.To) {
				query.To = r.EventTime
			}
		}
	}
	for trace, err := range e.rows.SessionTraces(ctx, query) {
		if err != nil {
			return err
		}
		j := byKey[store.SessionKey{AgentID: trace.AgentID, SessionID: trace.SessionID}]
		if j != nil {
			j.part.Traces = append(j.part.Traces, trace)
		}
	}
	return nil
}

// commit compares the rows with the receipts, fixes the plan and places the file.
func (e *exporter) commit(ctx context.Context, j *job) error {
	if err := e.dropRepeated(ctx, j); err != nil {
		return err
	}
	plan := &j.part.Plan
	receipts := j.session.receipts[:j.session.until(plan.Cut)]
	j.repeated = len(receipts) == 0
	j.part.Traces, j.differs = seal.Compare(j.part.Traces, receipts, plan.After, plan.Cut)
	if j.repeated || !j.differs.Empty() {
		return nil
	}
	seal.Order(j.part.Traces)
	if err := e.addCards(ctx, j); err != nil || j.failed != nil {
		return err
	}
	for {
		if err := e.fix(ctx, j); err != nil {
			return err
		}
		in, err := seal.Compose(&j.part, seal.Generator{Name: e.cfg.Generator, URL: e.cfg.GeneratorURL}, e.cfg.OutputLimit)
		if err != nil {
			j.failed = err
			return nil
		}
		j.bundle, err = seal.Place(e.cfg.bundleDir(), &j.part, in, e.key)
		j.redacted = in.Redactions
		if !errors.Is(err, seal.ErrTaken) {
			return err
		}
		plan.ExportedAt++
		plan.File, j.fixed = seal.File(j.part.AgentID, j.part.SessionID, plan.ExportedAt), false
	}
}

// addCards adds the cards that the verdicts of the part rest on.
func (e *exporter) addCards(ctx context.Context, j *job) error {
	j.part.Cards = map[string][]byte{}
	for _, t := range j.part.Traces {
		if t.Verdict == nil || t.Verdict.Metadata.CardDigest.IsZero() || j.part.Cards[t.Verdict.CardID] != nil {
			continue
		}
		card, err := e.cards.Lookup(ctx, t.Verdict.CardID)
		if errors.Is(err, cards.ErrUnknown) {
			j.failed = fmt.Errorf("card %q of a verdict: %w", t.Verdict.CardID, err)
			return nil
		}
		if err != nil {
			return err
		}
		j.part.Cards[t.Verdict.CardID] = card.Card.Raw
	}
	return nil
}

// fix writes the plan into the bucket, unless it is there.
func (e *exporter) fix(ctx context.Context, j *job) error {
	if j.fixed {
		return nil
	}
	if err := e.write(ctx, j); err != nil {
		return fmt.Errorf("fix the plan: %w", err)
	}
	j.fixed = true
	return nil
}

// write writes the job's record over the revision it was read with.
func (e *exporter) write(ctx context.Context, j *job) error {
	value, err := j.part.Plan.Encode()
	if err != nil {
		return err
	}
	key := seal.Key(j.part.AgentID, j.part.SessionID)
	if j.revision == 0 {
		j.revision, err = e.seals.Create(ctx, key, value)
	} else {
		j.revision, err = e.seals.Update(ctx, key, value, j.revision)
	}
	return err
}

// finish marks the part as sealed: all that follows from it is recorded.
func (e *exporter) finish(ctx context.Context, j *job) error {
	if j.bundle == nil {
		return nil
	}
	j.part.Plan.State, j.part.Plan.SHA256 = seal.Sealed, j.bundle.SHA256
	if err := e.write(ctx, j); err != nil {
		return fmt.Errorf("mark as sealed: %w", err)
	}
	return nil
}

// forget takes what is sealed out of the index.
func (e *exporter) forget(jobs []*job) {
	for _, j := range jobs {
		s := j.session
		if j.bundle == nil && !j.repeated {
			s.heldUntil = time.Now().Add(holdFor)
			continue
		}
		if j.repeated {
			e.release(s, j.part.Plan.Cut)
			continue
		}
		e.metrics.sealed.WithLabelValues(j.part.Plan.Reason).Inc()
		e.metrics.traces.Add(float64(len(j.part.Traces)))
		e.release(s, j.part.Plan.Cut)
	}
}

// release takes the receipts up to cut out of the index.
func (e *exporter) release(s *session, cut uint64) {
	s.settle(cut)
	s.heldUntil, s.held = time.Time{}, ""
	if len(s.receipts) == 0 {
		delete(e.index.sessions, s.key)
	}
}

// holdFor is how long a session whose rows differ waits until they are looked at
// again: they may be put right.
const holdFor = time.Minute
