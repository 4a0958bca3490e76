package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/aap/session"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/walk"
	"github.com/plumbline/plumbline/schema"
)

// found is what the pipeline has stored about the traces that this run published.
type found struct {
	stored     map[schema.Digest]bool
	added      int // rows that were not there before
	strange    int // of these, rows that this run did not publish
	unjudged   uint64
	violations map[string][]string // type → trace ids, sorted
	findings   map[string][]string // type → trace ids, sorted

	// Findings on sessions: the traces that they name, sorted, and how many there are.
	sessionFindings map[string][]string
	sessionCounts   map[string]int

	alerts    []*schema.DriftAlert     // each as its newest event says
	loops     []string                 // traces that made a running session a loop
	conflicts []string                 // trace ids, sorted
	letters   map[schema.Digest]string // refused line → reason
	bundles   []store.Bundle
}

// find reads the results; before lists the traces that existed before this run.
func find(ctx context.Context, broker *stream.Client, rows *store.Store, p *published, before []schema.Digest) (*found, error) {
	f := &found{stored: map[schema.Digest]bool{}, sessionFindings: map[string][]string{}, sessionCounts: map[string]int{}}
	violations, err := rows.Violations(ctx)
	if err != nil {
		return nil, err
	}
	findings, err := rows.Findings(ctx)
	if err != nil {
		return nil, err
	}
	f.violations, f.findings = p.mine(violations), p.mine(findings)

	// The verdicts on the sealed parts of this run's sessions. A verdict counts all of its
	// findings, but lists at most schema.MaxSessionFindings.
	verdicts, err := rows.SessionVerdicts(ctx, "", "")
	if err != nil {
		return nil, err
	}
	for _, v := range verdicts {
		if _, mine := p.sessions[store.SessionKey{AgentID: v.AgentID, SessionID: v.SessionID}]; !mine {
			continue
		}
		for _, finding := range v.Findings {
			f.sessionFindings[finding.Type] = append(f.sessionFindings[finding.Type], finding.TraceID)
		}
		for kind, n := range v.FindingCounts {
			f.sessionCounts[kind] += int(n)
		}
	}
	for _, ids := range f.sessionFindings {
		slices.Sort(ids)
	}

	alerts, err := rows.DriftAlerts(ctx)
	if err != nil {
		return nil, err
	}
	for i := range alerts {
		if a := &alerts[i].DriftAlert; slices.ContainsFunc(a.TraceIDs, func(id string) bool { return p.ids[id] }) {
			f.alerts = append(f.alerts, a)
		}
	}
	if f.loops, err = loops(ctx, broker, p); err != nil {
		return nil, err
	}
	conflicts, err := rows.Conflicts(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range conflicts {
		if p.ids[c.TraceID] {
			f.conflicts = append(f.conflicts, c.TraceID)
		}
	}
	slices.Sort(f.conflicts)
	letters, err := rows.DeadLetters(ctx)
	if err != nil {
		return nil, err
	}
	f.letters = p.lettersOf(letters)
	if f.bundles, err = p.bundles(ctx, rows); err != nil {
		return nil, err
	}
	return f, f.count(ctx, rows, p, before)
}

// loops returns the traces of this run that the alerts about loops name. An alert may be in the
// stream twice, after a longer outage.
func loops(ctx context.Context, broker *stream.Client, p *published) ([]string, error) {
	state, err := broker.StreamState(ctx, stream.Alerts)
	if err != nil {
		return nil, err
	}
	traces := map[string]string{}
	for m, err := range walk.Messages(ctx, broker, stream.Alerts, state) {
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(m.ID(), session.LoopAlertPrefix) {
			continue
		}
		var alert schema.LoopAlert
		if err := json.Unmarshal(m.Data, &alert); err != nil {
			return nil, fmt.Errorf("decode the alert %s: %w", m.ID(), err)
		}
		if id := alert.Finding.TraceID; p.ids[id] {
			traces[m.ID()] = id
		}
	}
	return slices.Collect(maps.Values(traces)), nil
}

// count counts the traces and the verdicts.
func (f *found) count(ctx context.Context, rows *store.Store, p *published, before []schema.Digest) error {
	digests, err := rows.TraceDigests(ctx)
	if err != nil {
		return err
	}
	old := make(map[schema.Digest]bool, len(before))
	for _, d := range before {
		old[d] = true
	}
	for _, d := range digests {
		_, mine := p.traces[d]
		if mine {
			f.stored[d] = true
		}
		if !old[d] {
			f.added++
		}
		if !old[d] && !mine {
			f.strange++
		}
	}
	counts, err := rows.Counts(ctx)
	f.unjudged = counts.Traces - min(counts.Verdicts, counts.Traces) + counts.CardUnknown
	return err
}

// bundles returns the bundles of this run's sessions.
func (p *published) bundles(ctx context.Context, rows *store.Store) (mine []store.Bundle, err error) {
	all, err := rows.Bundles(ctx, "", "")
	for _, b := range all {
		if _, ok := p.sessions[store.SessionKey{AgentID: b.AgentID, SessionID: b.SessionID}]; ok {
			mine = append(mine, b)
		}
	}
	return mine, err
}

// mine keeps, for each type, the traces that this run published, sorted.
func (p *published) mine(byType map[string][]string) map[string][]string {
	mine := map[string][]string{}
	for kind, ids := range byType {
		for _, id := range ids {
			if p.ids[id] {
				mine[kind] = append(mine[kind], id)
			}
		}
		slices.Sort(mine[kind])
	}
	return mine
}

// lettersOf returns the dead letters that are lines of this run.
func (p *published) lettersOf(letters []store.DeadLetter) map[schema.Digest]string {
	mine := map[schema.Digest]string{}
	for i := range letters {
		if _, ok := p.refused[letters[i].Digest]; ok {
			mine[letters[i].Digest] = letters[i].Reason
		}
	}
	return mine
}

// sealedIDs returns the trace ids of this run that the bundles contain.
func (p *published) sealedIDs(bundles []store.Bundle) map[string]bool {
	sealed := map[string]bool{}
	for i := range bundles {
		for _, id := range bundles[i].TraceIDs {
			if p.ids[id] {
				sealed[id] = true
			}
		}
	}
	return sealed
}
