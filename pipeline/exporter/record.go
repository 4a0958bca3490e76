package exporter

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/aap/session"
	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/events"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// Rows reads traces and records results (store.Store).
type Rows interface {
	SessionTraces(ctx context.Context, q store.SessionQuery) iter.Seq2[*store.StoredTrace, error]
	PartTraces(ctx context.Context, q store.PartQuery) iter.Seq2[*store.StoredTrace, error]
	EarlierBundles(ctx context.Context, q store.EarlierQuery) ([]store.EarlierBundle, error)
	NumberedTraces(ctx context.Context, questions []store.NumberQuestion) ([][]session.NumberedTrace, error)
	PrecedingNumbers(ctx context.Context, questions []store.NumberQuestion) ([]*session.NumberedTrace, error)
	PriorTraces(ctx context.Context, traceIDs []string) ([]session.PriorTrace, error)
	InsertSessionVerdicts(ctx context.Context, verdicts []*schema.SessionVerdict) error
	InsertBundles(ctx context.Context, bundles []store.Bundle) error
	InsertSessions(ctx context.Context, sessions []store.Session) error
	InsertSealRuns(ctx context.Context, runs []store.SealRun) error
	InsertBundleCopies(ctx context.Context, copies []store.BundleCopy) error
}

// Outcomes of a seal run.
const (
	outcomeSealed = "sealed"
	outcomeHeld   = "held"   // rows and receipts differ
	outcomeFailed = "failed" // no bundle can be made
)

// record writes the result of every job that is not repeated: rows, alerts, ledger events,
// announcements. It is idempotent.
func (e *exporter) record(ctx context.Context, jobs []*job, head *events.LogHead) error {
	jobs = slices.DeleteFunc(slices.Clone(jobs), func(j *job) bool { return j.repeated })
	now := e.clock.now()
	var bundles []store.Bundle
	var verdicts []*schema.SessionVerdict
	sessions, runs := make([]store.Session, 0, len(jobs)), make([]store.SealRun, 0, len(jobs))
	for _, j := range jobs {
		e.report(j)
		sessions, runs = append(sessions, j.sessionRow(now)), append(runs, j.runRow(now))
		if j.bundle != nil {
			bundles = append(bundles, j.bundleRow())
			if j.part.Verdict != nil {
				verdicts = append(verdicts, j.part.Verdict)
			}
		}
	}
	for _, step := range []func() error{
		func() error { return e.rows.InsertSessionVerdicts(ctx, verdicts) },
		func() error { return e.rows.InsertBundles(ctx, bundles) },
		func() error { return e.rows.InsertSealRuns(ctx, runs) },
		func() error { return e.rows.InsertSessions(ctx, sessions) },
		func() error { return e.alert(ctx, verdicts) },
		func() error { return e.announce(ctx, jobs, head) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// report logs a session that cannot be sealed, once for each reason.
func (e *exporter) report(j *job) {
	if j.bundle != nil {
		return
	}
	e.metrics.held.Inc()
	if _, why := j.result(); why != j.session.held {
		j.session.held = why
		e.env.Log.Error("a session is held and not sealed", "agent", j.part.AgentID, "session", j.part.SessionID, "reason", why,
			"hint", "table seal_runs lists the traces; the session is checked again every "+holdFor.String())
	}
}

// announce appends a CLAIM for each bundle and the transparency log's head, if there is one, to the ledger, and
// announces the bundles. It appends all at once, because the broker syncs its disk for each batch.
func (e *exporter) announce(ctx context.Context, jobs []*job, head *events.LogHead) error {
	var claims []ledger.Event
	for _, j := range jobs {
		if j.bundle == nil {
			continue
		}
		claim, err := events.Claim{
			AgentID: j.part.AgentID, SessionID: j.part.SessionID, Part: j.part.Plan.Part,
			File: j.part.Plan.File, SHA256: j.bundle.SHA256,
		}.Event()
		if err != nil {
			return err
		}
		claims = append(claims, claim)
	}
	if len(claims) == 0 {
		return nil
	}
	entries := claims
	if head != nil {
		event, err := head.Event()
		if err != nil {
			return err
		}
		entries = append(entries, event)
	}
	if err := e.broker.AppendLedger(ctx, entries...); err != nil {
		return err
	}
	for i := range claims {
		if err := e.broker.AnnounceBundle(claims[i].Data); err != nil {
			return err
		}
	}
	return nil
}

// result returns the outcome of the job, and the reason for sealing it or for not sealing it.
func (j *job) result() (outcome, why string) {
	switch {
	case j.bundle != nil:
		return outcomeSealed, j.part.Plan.Reason
	case j.failed != nil:
		return outcomeFailed, j.failed.Error()
	}
	d := &j.differs
	return outcomeHeld, fmt.Sprintf("rows and receipts differ: %d changed, %d missing, %d foreign", len(d.Changed), len(d.Missing), len(d.Foreign))
}

func (j *job) sessionRow(now time.Time) store.Session {
	receipts, left := j.session.receipts, &j.session.overflow
	_, why := j.result()
	row := store.Session{
		AgentID: j.part.AgentID, SessionID: j.part.SessionID,
		Version: j.rowVersion(now), UpdatedAt: now,
		Status: store.SessionSealed, Reason: why,
		Traces: uint64(len(receipts) + left.receipts), Bundles: uint32(j.part.Plan.Part), Ended: j.session.ended,
	}
	if j.bundle == nil {
		row.Status, row.Bundles = store.SessionHeld, uint32(j.part.Plan.Part-1)
	}
	row.FirstEvent, row.LastEvent, row.FirstSequence, row.LastSequence = extent(receipts)
	if left.receipts > 0 {
		row.LastSequence = left.highest
		if left.first.Before(row.FirstEvent) {
			row.FirstEvent = left.first
		}
		if left.last.After(row.LastEvent) {
			row.LastEvent = left.last
		}
	}
	return row
}

// rowVersion returns the version of a row of the session. It is above that of every row before it, also
// if that one was written by a clock that was ahead: it would replace this row.
func (j *job) rowVersion(now time.Time) uint64 {
	s, plan := j.session, &j.part.Plan
	s.rowVersion = max(uint64(now.UnixNano()), s.rowVersion+1, plan.RowVersion+1)
	if j.bundle != nil {
		plan.RowVersion = s.rowVersion // finish stores it
	}
	return s.rowVersion
}

func (j *job) bundleRow() store.Bundle {
	plan := &j.part.Plan
	row := store.Bundle{
		AgentID: j.part.AgentID, SessionID: j.part.SessionID, Part: uint32(plan.Part),
		LastPart: plan.LastPart, Path: plan.File, Bytes: uint64(j.bundle.Size),
		ActionCount: uint64(j.bundle.Rows), TraceCount: uint64(len(j.part.Traces)), Redactions: uint64(j.redacted),
		ChainHash: j.bundle.ChainHash, PreviousSHA256: plan.Previous, KeyID: plan.KeyID, Reason: plan.Reason,
		ExportedAt: time.Unix(plan.ExportedAt, 0).UTC(),
	}
	if err := row.SHA256.UnmarshalText([]byte(j.bundle.SHA256)); err != nil {
		panic(err) // cannot fail: package aivs writes 64 hexadecimal digits
	}
	row.FirstEvent, row.LastEvent, row.FirstSequence, row.LastSequence = extent(j.receipts())
	for _, t := range j.part.Traces {
		row.TraceIDs = append(row.TraceIDs, t.TraceID)
	}
	return row
}

// runRow returns the row of a seal run. The same outcome of the same plan has the same id, so a
// session that stays held does not fill the table.
func (j *job) runRow(now time.Time) store.SealRun {
	plan := &j.part.Plan
	outcome, why := j.result()
	row := store.SealRun{
		AgentID: j.part.AgentID, SessionID: j.part.SessionID, StartedAt: j.began, FinishedAt: now,
		Outcome: outcome, Reason: why, Traces: uint64(plan.Traces), Cut: plan.Cut,
		Changed: j.differs.Changed, Missing: j.differs.Missing, Foreign: j.differs.Foreign,
	}
	if j.bundle != nil {
		row.SHA256 = j.bundle.SHA256
	}
	identity := fmt.Sprintf("%q %q %d %d %s %q", row.AgentID, row.SessionID, plan.Part, plan.Cut, row.Outcome, row.Reason) +
		strings.Join(row.Changed, "\n") + strings.Join(row.Missing, "\n") + strings.Join(row.Foreign, "\n") + row.SHA256
	row.RunID = schema.DigestOf([]byte(identity)).String()
	return row
}

// extent returns the ranges of event times and sequences of receipts that are sorted by sequence.
func extent(receipts []schema.Receipt) (first, last time.Time, lowest, highest uint64) {
	for i, r := range receipts {
		if i == 0 || r.EventTime.Before(first) {
			first = r.EventTime
		}
		if r.EventTime.After(last) {
			last = r.EventTime
		}
	}
	if len(receipts) > 0 {
		lowest, highest = receipts[0].Sequence, receipts[len(receipts)-1].Sequence
	}
	return first, last, lowest, highest
}
