package exporter

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/plumbline/plumbline/pipeline/seal"
	"github.com/plumbline/plumbline/pipeline/stream"
)

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
	e.mu.Lock()
	defer e.mu.Unlock()
	kept := jobs[:0]
	for _, j := range jobs {
		if j.part.Plan.Part > 0 {
			kept = append(kept, j)
		} else if len(j.session.receipts) == 0 {
			delete(e.index.sessions, j.session.key)
		}
	}
	return kept, e.name(kept)
}

// name gives plans a file that no other has: within an agent's folder a name tells
// only the beginning of a session's id, and the second. A plan that was fixed before
// has its own, unless another session of this round met it first, when no file was there.
func (e *exporter) name(jobs []*job) error {
	for _, j := range jobs {
		plan, key := &j.part.Plan, j.session.key
		owner, named := e.names[plan.File]
		taken := named && owner != key
		if !j.fixed && !taken {
			_, err := os.Lstat(filepath.Join(e.cfg.bundleDir(), plan.File))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("look for an earlier bundle: %w", err)
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
	n, full := s.next(e.cfg)
	if within := s.until(floor); within < n {
		if full {
			return nil // not yet the whole part
		}
		n = within
	}
	if n == 0 {
		return nil
	}
	now := time.Now().Unix()
	j.part.Plan = seal.Record{
		State: seal.Planned, Part: last.Part + 1, StreamCreated: created,
		After: covered, Cut: s.receipts[n-1].Sequence, Traces: int64(n),
		ExportedAt: now, KeyID: e.keyID, Previous: last.SHA256,
		LastPart: n == len(s.receipts) && (s.ended || s.requested || !goesOn(j.reason)), Reason: j.reason,
		File:    seal.File(s.key.AgentID, s.key.SessionID, now),
		Session: seal.Session{Carry: last.Session.Carry},
	}
	return nil
}

// goesOn tells whether a session that is sealed for the reason is open after it.
func goesOn(reason string) bool {
	return reason == seal.ReasonRotation || reason == seal.ReasonSchedule
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
