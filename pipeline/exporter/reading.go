package exporter

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// readTraces reads the rows of all jobs. It uses one query for all sessions that are sealed as a
// whole, and one for each part of a longer session.
func (e *exporter) readTraces(ctx context.Context, jobs []*job) error {
	var whole, parts []*job
	for _, j := range jobs {
		j.part.Traces = nil
		if plan := &j.part.Plan; plan.Part <= 2 && plan.Cut >= j.session.highest {
			whole = append(whole, j)
		} else {
			parts = append(parts, j)
		}
	}
	if err := e.readWhole(ctx, whole); err != nil {
		return err
	}
	for _, j := range parts { // one at a time: a part may be as large as a group
		if err := e.readPart(ctx, j); err != nil {
			return err
		}
	}
	return nil
}

// readWhole reads all rows of the jobs' sessions.
func (e *exporter) readWhole(ctx context.Context, jobs []*job) error {
	var query store.SessionQuery
	byKey := make(map[store.SessionKey]*job, len(jobs))
	for i, j := range jobs {
		query.Sessions = append(query.Sessions, j.session.key)
		byKey[j.session.key] = j
		first, last := j.times()
		if i == 0 || first.Before(query.From) {
			query.From = first
		}
		if last.After(query.To) {
			query.To = last
		}
	}
	for trace, err := range e.rows.SessionTraces(ctx, query) {
		if err != nil {
			return err
		}
		if j := byKey[store.SessionKey{AgentID: trace.AgentID, SessionID: trace.SessionID}]; j != nil {
			j.part.Traces = append(j.part.Traces, trace)
		}
	}
	return nil
}

// missingAtOnce is how many digests one query looks up.
const missingAtOnce = 1000

// readPart reads the rows with the sequences of the part. It then looks up by digest the receipts
// without such a row: a trace that was published again has its row at the sequence of an earlier
// part.
func (e *exporter) readPart(ctx context.Context, j *job) error {
	query := store.PartQuery{Session: j.session.key, After: j.part.Plan.After, Cut: j.part.Plan.Cut}
	query.From, query.To = j.times()
	if err := j.take(e.rows.PartTraces(ctx, query)); err != nil {
		return err
	}
	query.After, query.Cut = 0, 0
	for digests := range slices.Chunk(j.missing(), missingAtOnce) {
		query.Digests = digests
		if err := j.take(e.rows.PartTraces(ctx, query)); err != nil {
			return err
		}
	}
	return nil
}

func (j *job) take(rows iter.Seq2[*store.StoredTrace, error]) error {
	for trace, err := range rows {
		if err != nil {
			return err
		}
		j.part.Traces = append(j.part.Traces, trace)
	}
	return nil
}

// missing returns the digests of the part's receipts for which no row has been read.
func (j *job) missing() (digests []string) {
	found := make(map[schema.Digest]bool, len(j.part.Traces))
	for _, t := range j.part.Traces {
		found[t.Digest] = true
	}
	for _, r := range j.receipts() {
		if !found[r.Digest] {
			digests = append(digests, r.Digest.String())
		}
	}
	return digests
}

// receipts returns the receipts of the part.
func (j *job) receipts() []schema.Receipt {
	return j.session.receipts[:j.session.until(j.part.Plan.Cut)]
}

// times returns the earliest and the latest event time of the part.
func (j *job) times() (first, last time.Time) {
	first, last, _, _ = extent(j.receipts())
	return first, last
}
