package exporter

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/aivs/redact"
	"github.com/plumbline/plumbline/pipeline/durable"
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

// commit writes the plans of a group into the bucket, places the files, and syncs their folders. Where a file's name
// is taken, or a plan names another key, it writes a new plan.
func (e *exporter) commit(ctx context.Context, jobs []*job) error {
	open := slices.DeleteFunc(slices.Clone(jobs), func(j *job) bool { return j.judge == nil })
	for len(open) > 0 {
		planned := slices.DeleteFunc(slices.Clone(open), func(j *job) bool { return j.fixed })
		if err := e.write(ctx, planned); err != nil {
			return fmt.Errorf("write the plans: %w", err)
		}
		for _, j := range planned {
			j.fixed = true
		}
		if err := each(ctx, open, e.place); err != nil {
			return err
		}
		open = slices.DeleteFunc(open, func(j *job) bool { return j.bundle != nil || j.failed != nil })
	}
	return e.syncFolders(placed(jobs))
}

// syncFolders makes the names of placed files durable, also those that an earlier attempt placed.
func (e *exporter) syncFolders(jobs []*job) error {
	folders := map[string]bool{}
	for _, j := range jobs {
		folders[filepath.Join(e.cfg.bundleDir(), filepath.Dir(j.part.Plan.File))] = true
	}
	var group errgroup.Group
	group.SetLimit(spread)
	for folder := range folders {
		group.Go(func() error { return durable.Sync(folder) })
	}
	return group.Wait()
}

// place places the file of a fixed plan. Where it cannot, it changes the plan so another attempt
// can.
func (e *exporter) place(_ context.Context, j *job) error {
	plan := &j.part.Plan
	j.part.Verdict, j.carry = j.judge.Finish(plan.Session.Answers, time.Unix(plan.ExportedAt, 0))
	for i := range j.part.Verdict.Findings {
		finding := &j.part.Verdict.Findings[i]
		finding.Description, _ = redact.AllRules.Message(finding.Description) // rows and alerts repeat the description
	}
	in, err := seal.Compose(&j.part, j.contents, e.cfg.Generator, e.cfg.GeneratorURL)
	if err != nil {
		j.failed = err
		return nil // the session is held for it, the others continue
	}
	bundle, err := seal.Place(e.cfg.bundleDir(), &j.part, in, e.key)
	switch {
	case err == nil:
		j.bundle, j.redacted = bundle, in.Redactions
		return nil
	case errors.Is(err, seal.ErrUnfit):
		j.failed = err
		return nil
	case errors.Is(err, seal.ErrTaken):
		apart := seal.FileApart(j.part.AgentID, j.part.SessionID, plan.Part, plan.ExportedAt)
		if plan.File == apart {
			plan.ExportedAt++
			apart = seal.FileApart(j.part.AgentID, j.part.SessionID, plan.Part, plan.ExportedAt)
		}
		plan.File = apart
	case errors.Is(err, seal.ErrOtherKey): // the time must be within the new key's period, too
		plan.ExportedAt = max(plan.ExportedAt, e.clock.now().Unix())
		plan.File = seal.FileApart(j.part.AgentID, j.part.SessionID, plan.Part, plan.ExportedAt)
	default:
		return err
	}
	plan.KeyID, j.fixed = e.keyID, false
	return nil
}

// write writes the records of the jobs. Each write fails if the record has changed since its
// revision was read.
func (e *exporter) write(ctx context.Context, jobs []*job) error {
	if len(jobs) == 0 {
		return nil
	}
	writes := make([]stream.Write, len(jobs))
	for i, j := range jobs {
		value, err := j.part.Plan.Encode()
		if err != nil {
			return err
		}
		writes[i] = stream.Write{Key: seal.Key(j.part.AgentID, j.part.SessionID), Value: value, Last: j.revision}
	}
	revisions, err := e.seals.WriteAll(ctx, writes)
	if err != nil {
		return err
	}
	for i, j := range jobs {
		j.revision = revisions[i]
	}
	return nil
}

// finish marks the parts as sealed. All results must have been recorded before.
func (e *exporter) finish(ctx context.Context, jobs []*job) error {
	jobs = placed(jobs)
	for _, j := range jobs {
		j.part.Plan.State, j.part.Plan.SHA256 = seal.Sealed, j.bundle.SHA256
		j.part.Plan.Session = seal.Session{Carry: j.carry}
	}
	if err := e.write(ctx, jobs); err != nil {
		return fmt.Errorf("mark as sealed: %w", err)
	}
	return nil
}
