package exporter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/aap/session"
	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/pipeline/durable"
	"github.com/plumbline/plumbline/pipeline/seal"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

const (
	// Limits of a group, which is held in memory as a whole. A single part may exceed them.
	groupSessions = 500
	groupTraces   = 10_000
	groupBytes    = 16 << 20

	// near is how many sessions that are due are sorted by their agents. The oldest ones come first, and
	// rows of an hour are sorted by agent: so a group reads few rows of sessions of other groups.
	near = 20 * groupSessions

	// spread is how many sessions of a group are processed at a time. Most of their time is spent
	// waiting for the broker or for disk syncs, which they share.
	spread = 16
)

// due returns the sessions that are due, in groups that are sealed with the same queries and
// writes. The sessions of a group are from the same hours and of few agents, since that is what its
// queries read.
func (e *exporter) due(floor uint64) (groups [][]*openSession) {
	var all []*openSession
	now := e.index.clock()
	for _, s := range e.index.sessions {
		if !e.index.follows(s) && s.due(e.cfg, e.schedules, now, e.index.floor(s, floor)) != "" {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *openSession) int { return cmp.Compare(a.message, b.message) })
	for sessions := range slices.Chunk(all, near) {
		slices.SortStableFunc(sessions, func(a, b *openSession) int { return cmp.Compare(a.key.AgentID, b.key.AgentID) })
	}
	first, traces, bytes := 0, 0, int64(0) // of the last group
	for i, s := range all {
		n, size := min(len(s.receipts), e.cfg.RotateRows), min(s.bytes, e.cfg.RotateBytes)
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
	session  *openSession
	reason   string // for sealing it
	part     seal.Part
	judge    *session.Judge    // nil: there is nothing to seal, or the part must not be sealed
	contents *seal.Contents    // of the bundle
	carry    *session.NextPart // for the next part
	revision uint64            // of the record in the bucket; 0: there is none
	fixed    bool              // the plan is in the bucket
	found    bool              // an earlier attempt put its cut into the bucket
	began    time.Time
	bundle   *aivs.Bundle
	redacted int64
	differs  seal.Difference
	failed   error // why no bundle can be made although rows and receipts agree
	repeated bool  // every trace is in an earlier part already: there is nothing to seal
}

func (j *job) receipts() []schema.Receipt {
	return j.session.receipts[:j.session.until(j.part.Plan.Cut)]
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

// plan reads the plan of each session from the bucket, or makes one. A session with nothing left
// to seal is removed from the index.
func (e *exporter) plan(ctx context.Context, group []*openSession, floor uint64) ([]*job, error) {
	jobs := make([]*job, len(group))
	for i, s := range group {
		jobs[i] = &job{session: s, began: time.Now()}
		jobs[i].part.AgentID, jobs[i].part.SessionID = s.key.AgentID, s.key.SessionID
	}
	err := each(ctx, jobs, func(ctx context.Context, j *job) error { return e.planOne(ctx, j, e.index.floor(j.session, floor)) })
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	kept := jobs[:0]
	for _, j := range jobs {
		if j.part.Plan.Part > 0 {
			kept = append(kept, j)
		} else {
			e.index.closeEmpty(j.session)
			e.behind = e.behind || j.session.short
		}
	}
	return kept, e.name(kept)
}

// name gives each plan a file name of its own. A name contains only the beginning of a session's
// id and the second, so sessions of one agent may collide. A plan that was fixed before keeps its
// name, unless another session of this round took it while no file existed.
func (e *exporter) name(jobs []*job) error {
	for _, j := range jobs {
		plan, key := &j.part.Plan, j.session.key
		owner, named := e.names[plan.File]
		taken := named && owner != key
		if !j.fixed && !taken {
			_, err := os.Lstat(filepath.Join(e.cfg.bundleDir(), plan.File))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("look for an existing bundle: %w", err)
			}
			taken = err == nil
		}
		if taken {
			plan.File, j.fixed = seal.FileApart(key.AgentID, key.SessionID, plan.Part, plan.ExportedAt), false
		}
		e.names[plan.File] = key
	}
	return nil
}

// planOne uses the plan in the bucket if there is one. Otherwise it removes sealed receipts from
// the index, and makes a plan if the session is still due.
func (e *exporter) planOne(ctx context.Context, j *job, floor uint64) error {
	last, revision, err := e.lastRecord(ctx, j.session.key)
	if err != nil {
		return err
	}
	j.revision = revision
	s := j.session
	after := e.index.covered(s, &last)
	s.compact(after)
	if last.State == seal.Planned && e.index.isOf(s, last.StreamCreated) {
		if !s.reaches(last.Cut) { // more receipts may be up to it than are kept now
			s.short, s.fixed, s.keep = true, true, max(s.keep, 2*len(s.receipts))
			return nil
		}
		j.part.Plan, j.fixed, j.found = last, true, true
		return durable.RemoveStaged(filepath.Join(e.cfg.bundleDir(), last.File))
	}
	if s.short = s.lacks(e.cfg); s.short {
		return nil
	}
	if j.reason = s.due(e.cfg, e.schedules, e.index.clock(), floor); j.reason == "" {
		return nil
	}
	n, full := s.next(e.cfg)
	if within := s.until(floor); within < n {
		if full {
			return nil // the part is not complete yet
		}
		n = within
	}
	if n > 0 {
		j.part.Plan = e.newPlan(j, &last, n, e.clock.now().Unix())
		j.part.Plan.StreamCreated, j.part.Plan.After = time.Unix(0, s.stream).UTC(), after
	}
	return nil
}

// newPlan returns the plan for the first n receipts of a session. last is the record of its
// previous part, or the plan of a part that can never be made, because its stream and its receipts no
// longer exist: this part takes its place.
func (e *exporter) newPlan(j *job, last *seal.Record, n int, now int64) seal.Record {
	s := j.session
	now = max(now, last.ExportedAt) // another process with a clock ahead may have dated the previous part
	part, previous := last.Part+1, last.SHA256
	if last.State == seal.Planned {
		part, previous = last.Part, last.Previous
	}
	return seal.Record{
		State: seal.Planned, Part: part, Cut: s.receipts[n-1].Sequence, Traces: int64(n),
		ExportedAt: now, KeyID: e.keyID, Previous: previous, Reason: j.reason,
		LastPart: n == len(s.receipts) && s.whole() && !s.followed && (s.ended || s.requested || j.reason != seal.ReasonRotation && j.reason != seal.ReasonSchedule),
		File:     seal.File(s.key.AgentID, s.key.SessionID, now),
		Session:  seal.Session{Carry: last.Session.Carry}, RowVersion: last.RowVersion,
	}
}

// maxCards is how many cards a part has at most. Each is a file of the bundle, and verifiers read
// 10,000 files.
const maxCards = 1_000

// cutAtCards ends a new part before the trace whose card would be one too many; the rest becomes the
// next part. Receipts do not name cards, so this is known only once the rows are read. A plan that an
// earlier attempt made is carried out as it is, since its file may exist.
func (j *job) cutAtCards() {
	if j.found {
		return
	}
	traces := slices.SortedFunc(slices.Values(j.part.Traces), func(a, b *store.StoredTrace) int { return cmp.Compare(a.Sequence, b.Sequence) })
	cards := map[string]bool{}
	for _, t := range traces {
		if t.Verdict == nil || t.Verdict.Metadata.CardDigest.IsZero() || cards[t.Verdict.CardID] {
			continue
		}
		if len(cards) == maxCards {
			plan := &j.part.Plan
			plan.Cut, plan.LastPart, plan.Reason = t.Sequence-1, false, seal.ReasonRotation
			plan.Traces = int64(len(j.receipts()))
			j.part.Traces = slices.DeleteFunc(j.part.Traces, func(t *store.StoredTrace) bool { return t.Sequence > plan.Cut })
			return
		}
		cards[t.Verdict.CardID] = true
	}
}

// lastRecord returns the bucket's record of a session, and its revision: 0 where there is none.
func (e *exporter) lastRecord(ctx context.Context, key store.SessionKey) (seal.Record, uint64, error) {
	value, revision, err := e.seals.GetNewest(ctx, seal.Key(key.AgentID, key.SessionID))
	if errors.Is(err, stream.ErrNotFound) {
		return seal.Record{}, 0, nil
	}
	if err != nil {
		return seal.Record{}, 0, err
	}
	record, err := seal.Decode(value)
	return record, revision, err
}

// clock returns the times that the exporter writes. It follows this machine's wall clock. If that is set
// back, time goes on from where it was, so nothing is dated before its cause, such as a bundle before its
// key. Once the wall clock turns out to be right, correct follows it back.
type clock struct {
	wall func() time.Time

	mu    sync.Mutex
	last  time.Time // the time returned last
	since time.Time // when it was returned, by the monotonic clock
}

func newClock(wall func() time.Time) *clock { return &clock{wall: wall} }

// now returns a time that is later than every time returned before, except those before a correction.
func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last, c.since = c.next()
	return c.last
}

// look returns the time without keeping it: what is only checked does not hold the clock ahead.
func (c *clock) look() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, _ := c.next()
	return now
}

func (c *clock) next() (now, since time.Time) {
	now, since = c.wall().Round(0), time.Now()
	if !c.last.IsZero() {
		if goesOn := c.last.Add(max(since.Sub(c.since), 1)); now.Before(goesOn) {
			now = goesOn
		}
	}
	return now, since
}

// farBehind is how far the wall clock must be behind before correct follows it.
const farBehind = 5 * time.Second

// correct goes back to the wall clock if that is far behind, and reports whether it was. The caller knows
// that the wall clock is not too early. Bundles that are dated ahead would be invalid once their key
// is replaced. The parts and the rows of a session keep their order without the clock (newPlan,
// rowVersion).
func (c *clock) correct() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, _ := c.next()
	far := now.Sub(c.wall()) > farBehind
	if far {
		c.last = time.Time{}
	}
	return far
}
