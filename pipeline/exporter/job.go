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

// Bucket is bucket seals (stream.Bucket). It reads from the leader: a replica that lags would
// return the plan of a part that is already sealed, and the rows after it would count as foreign.
type Bucket interface {
	GetNewest(ctx context.Context, key string) (value []byte, revision uint64, err error)
	WriteAll(ctx context.Context, writes []stream.Write) (revisions []uint64, err error)
	Put(ctx context.Context, key string, value []byte) (revision uint64, err error)
}

// Cards is the registry (cards.Registry).
type Cards interface {
	Lookup(ctx context.Context, cardID string) (*cards.Card, error)
}

// candidate is a session that is due, with the reason.
type candidate struct {
	session *openSession
	reason  string
}

// job is the work of sealing one part of a session.
type job struct {
	candidate
	part     seal.Part
	judge    *session.Judge // nil: there is nothing to seal, or the part must not be sealed
	contents *seal.Contents // of the bundle
	carry    *session.NextPart // for the next part
	revision uint64         // of the record in the bucket; 0: there is none
	fixed    bool           // the plan is in the bucket
	began    time.Time
	bundle   *aivs.Bundle
	redacted int64
	differs  seal.Difference
	failed   error    // why no bundle can be made although rows and receipts agree
	merkle   []string // cards of the part that commit to a transparency log
	repeated bool     // every trace is in an earlier part already: there is nothing to seal
}

// spread is how many sessions of a group are processed at a time. Most of their time is spent
// waiting for the broker or for disk syncs, which they share.
const spread = 16

// reportable returns the jobs that rows, alerts and the ledger report.
func reportable(jobs []*job) []*job {
	return slices.DeleteFunc(slices.Clone(jobs), func(j *job) bool { return j.repeated })
}

// each runs a step for every job, spread of them at a time.
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

// release removes the receipts up to cut from the index.
func (e *exporter) release(s *openSession, cut uint64) {
	s.compact(cut)
	s.heldUntil, s.held, s.fixed = time.Time{}, "", false
	e.index.closeEmpty(s)
}

// holdFor is how long a session whose rows differ waits before they are compared again, since
// they may be repaired.
const holdFor = time.Minute
