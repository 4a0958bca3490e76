package exporter

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/aap/session"
	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/pipeline/seal"
	"github.com/plumbline/plumbline/schema"
)

const (
	// Limits of a group, which is held in memory as a whole. A single part may exceed them.
	groupSessions = 200
	groupTraces   = 10_000
	groupBytes    = 16 << 20

	// spread is how many sessions of a group are processed at a time. Most of their time is spent
	// waiting for the broker or for disk syncs, which they share.
	spread = 16
)

// candidate is a session that is due, with the reason.
type candidate struct {
	session *openSession
	reason  string
}

// due returns the sessions that are due, in groups that are sealed with the same queries and
// writes. The oldest come first, so the sessions of a group are from the same hours, which is what
// its queries read.
func (e *exporter) due(floor uint64) (groups [][]candidate) {
	var all []candidate
	now := e.index.clock()
	for _, s := range e.index.sessions {
		if reason := s.due(e.cfg, e.schedules, now, floor); reason != "" {
			all = append(all, candidate{session: s, reason: reason})
		}
	}
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Compare(a.session.message, b.session.message) })
	first, traces, bytes := 0, 0, int64(0) // of the last group
	for i, c := range all {
		n, size := min(len(c.session.receipts), e.cfg.RotateRows), min(c.session.bytes, e.cfg.RotateBytes)
		if i > first && (i-first == groupSessions || traces+n > groupTraces || bytes+size > groupBytes) {
			groups = append(groups, all[first:i])
			first, traces, bytes = i, 0, 0
		}
		traces, bytes = traces+n, bytes+size
	}
	if first < len(all) {
		groups = append(groups, all[first:])
	}
	return groups
}

// job is the work of sealing one part of a session.
type job struct {
	candidate
	part     seal.Part
	judge    *session.Judge    // nil: there is nothing to seal, or the part must not be sealed
	contents *seal.Contents    // of the bundle
	carry    *session.NextPart // for the next part
	revision uint64            // of the record in the bucket; 0: there is none
	fixed    bool              // the plan is in the bucket
	began    time.Time
	bundle   *aivs.Bundle
	redacted int64
	differs  seal.Difference
	failed   error // why no bundle can be made although rows and receipts agree
	repeated bool  // every trace is in an earlier part already: there is nothing to seal
}

// receipts returns the receipts of the part.
func (j *job) receipts() []schema.Receipt {
	return j.session.receipts[:j.session.until(j.part.Plan.Cut)]
}

// reportable returns the jobs that rows, alerts and the ledger report.
func reportable(jobs []*job) []*job {
	return slices.DeleteFunc(slices.Clone(jobs), func(j *job) bool { return j.repeated })
}

// placed returns the jobs whose bundle is in place.
func placed(jobs []*job) []*job {
	return slices.DeleteFunc(slices.Clone(jobs), func(j *job) bool { return j.bundle == nil })
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
