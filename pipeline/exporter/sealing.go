package exporter

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/aap/session"
	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/seal"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// Bucket is bucket seals (stream.Bucket). Its leader is asked: a replica that is a little
// behind would give the plan of a part that is sealed already, and the rows after it would
// be taken for foreign ones.
type Bucket interface {
	GetNewest(ctx context.Context, key string) (value []byte, revision uint64, err error)
	WriteAll(ctx context.Context, writes []stream.Write) (revisions []uint64, err error)
	Put(ctx context.Context, key string, value []byte) (revision uint64, err error)
}

// Cards is the registry (cards.Registry).
type Cards interface {
	Lookup(ctx context.Context, cardID string) (*cards.Card, error)
}

// candidate is a session that is due, and why.
type candidate struct {
	session *openSession
	reason  string
}

// job is one part of a session on its way into a bundle.
type job struct {
	candidate
	part     seal.Part
	judge    *session.Judge // nil: there is nothing to seal, or nothing may be
	contents *seal.Contents // of the bundle
	carry    *session.Carry // for the next part
	revision uint64         // of the record in the bucket; 0: there is none
	fixed    bool           // the plan is in the bucket
	began    time.Time
	bundle   *aivs.Bundle
	redacted int64
	differs  seal.Difference
	failed   error    // why no bundle can be made of rows that are whole
	merkle   []string // cards of the part that commit to a transparency log
	repeated bool     // every trace is in an earlier part already: there is nothing to seal
}

// spread is how many sessions of a group are worked on at a time: most of that time
// goes by waiting for the broker or for disk syncs, which are shared.
const spread = 16

// seal takes a group of sessions through every step. What fails is repeated
// until it succeeds or ctx ends; a session whose rows differ is held. The lease is
// confirmed before files are placed, and again before anything is said of them, the
// transparency log included; the plans are compare-and-set.
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
		if err := each(ctx, jobs, e.compare); err != nil {
			return err
		}
		if err := e.ask(ctx, jobs); err != nil {
			return err
		}
		if err := e.confirm(ctx); err != nil {
			return err
		}
		if err := e.commit(ctx, jobs); err != nil {
			return err
		}
		if err := e.confirm(ctx); err != nil {
			return err
		}
		if err := e.anchor(ctx, jobs); err != nil {
			return err
		}
		if err := e.noteCopies(jobs); err != nil {
			return err
		}
		if err := e.record(ctx, told(jobs)); err != nil {
			return err
		}
		if err := e.finish(ctx, jobs); err != nil {
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

// forget takes what is sealed out of the index.
func (e *exporter) forget(jobs []*job) {
	e.mu.Lock()
	defer e.mu.Unlock()
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
		e.behind = true
		e.metrics.traces.Add(float64(len(j.part.Traces)))
		e.metrics.findings(j.part.Verdict)
		e.release(s, j.part.Plan.Cut)
	}
}

// release takes the receipts up to cut out of the index.
func (e *exporter) release(s *openSession, cut uint64) {
	s.settle(cut)
	s.heldUntil, s.held, s.fixed = time.Time{}, "", false
	e.index.closeEmpty(s)
}

// holdFor is how long a session whose rows differ waits until they are looked at
// again: they may be put right.
const holdFor = time.Minute
