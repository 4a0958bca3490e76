package store

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/plumbline/plumbline/schema"
)

// TraceReport is everything that is stored about one trace.
type TraceReport struct {
	Trace       StoredTrace      // its Verdict is the current one
	Verdicts    []schema.Verdict // judged before "card unknown", then by revocation and time, latest first
	DriftPoints []DriftPoint
	Bundles     []Bundle     // that contain it
	Copies      []BundleCopy // of these bundles
}

// Trace returns the reports on a trace id. There are several if agents or contents differ, and
// none if the id is unknown.
func (s *Store) Trace(ctx context.Context, traceID string) ([]TraceReport, error) {
	id := clickhouse.Named("trace", traceID)
	traces, err := readRows[StoredTrace](ctx, s, queryTrace, id)
	if err != nil {
		return nil, fmt.Errorf("read trace %q: %w", traceID, err)
	}
	verdicts, err := readRows[verdictRow](ctx, s, queryTraceVerdicts, id)
	if err != nil {
		return nil, fmt.Errorf("read the verdicts of trace %q: %w", traceID, err)
	}
	points, err := readRows[DriftPoint](ctx, s, queryTraceDriftPoints, id)
	if err != nil {
		return nil, fmt.Errorf("read the drift points of trace %q: %w", traceID, err)
	}
	bundles, err := readRows[Bundle](ctx, s, queryBundles, id, clickhouse.Named("agent", ""), clickhouse.Named("session", ""))
	if err != nil {
		return nil, fmt.Errorf("read the bundles of trace %q: %w", traceID, err)
	}
	reports := make([]TraceReport, len(traces))
	for i := range traces {
		reports[i] = report(&traces[i], verdicts, points, bundles)
		for _, b := range reports[i].Bundles {
			copies, err := s.BundleCopies(ctx, b.SHA256)
			if err != nil {
				return nil, err
			}
			reports[i].Copies = append(reports[i].Copies, copies...)
		}
	}
	return reports, nil
}

// report collects what belongs to one record.
func report(t *StoredTrace, verdicts []verdictRow, points []DriftPoint, bundles []Bundle) TraceReport {
	r := TraceReport{Trace: *t}
	for i := range verdicts {
		if verdicts[i].TraceDigest == t.Digest {
			r.Verdicts = append(r.Verdicts, *verdicts[i].verdict())
		}
	}
	if len(r.Verdicts) > 0 {
		r.Trace.Verdict = &r.Verdicts[0]
	}
	for _, p := range points {
		if p.TraceDigest == t.Digest {
			r.DriftPoints = append(r.DriftPoints, p)
		}
	}
	for _, b := range bundles {
		if b.AgentID == t.AgentID && b.SessionID == t.SessionID && b.FirstSequence <= t.Sequence && t.Sequence <= b.LastSequence {
			r.Bundles = append(r.Bundles, b)
		}
	}
	return r
}

// Counts holds the numbers of visible rows, and the number of trace rows with duplicates.
type Counts struct {
	Traces      uint64 `ch:"traces"`
	TraceRows   uint64 `ch:"trace_rows"` // including duplicates that are not merged yet
	Conflicts   uint64 `ch:"conflicts"`  // (agent_id, trace_id) with several contents
	Verdicts    uint64 `ch:"verdicts"`   // current ones: one for each trace
	CardUnknown uint64 `ch:"card_unknown"`
	DriftPoints uint64 `ch:"drift_points"`
	DriftAlerts uint64 `ch:"drift_alerts"`
	Bundles     uint64 `ch:"bundles"`
	DeadLetters uint64 `ch:"dead_letters"`
}

// Counts counts all rows of the tenant.
func (s *Store) Counts(ctx context.Context) (Counts, error) {
	rows, err := readRows[Counts](ctx, s, queryCounts)
	if err != nil {
		return Counts{}, fmt.Errorf("count: %w", err)
	}
	return rows[0], nil
}

// Violations returns the ids of the traces whose current verdict has a violation, by the type of
// the violation.
func (s *Store) Violations(ctx context.Context) (map[string][]string, error) {
	return s.remarked(ctx, "violations", queryViolations)
}

// Findings returns the ids of the traces whose current verdict has a finding, by the type of the
// finding.
func (s *Store) Findings(ctx context.Context) (map[string][]string, error) {
	return s.remarked(ctx, "findings", queryFindings)
}

// Warnings returns the ids of the traces whose current verdict has a warning, by the type of the
// warning.
func (s *Store) Warnings(ctx context.Context) (map[string][]string, error) {
	return s.remarked(ctx, "warnings", queryWarnings)
}

func (s *Store) remarked(ctx context.Context, what, query string) (map[string][]string, error) {
	ctx, cancel := s.readContext(ctx)
	defer cancel()
	rows, err := s.conn.Query(ctx, query, clickhouse.Named("tenant", s.cfg.Tenant))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	defer rows.Close()
	traces := map[string][]string{}
	for rows.Next() {
		var kind string
		var ids []string
		if err := rows.Scan(&kind, &ids); err != nil {
			return nil, fmt.Errorf("read %s: %w", what, err)
		}
		traces[kind] = ids
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	return traces, nil
}

// Conflict is one (agent_id, trace_id) with several contents.
type Conflict struct {
	Owned
	AgentID       string    `ch:"agent_id"`
	TraceID       string    `ch:"trace_id"`
	Digests       []string  `ch:"digests"` // hexadecimal, in stream order
	FirstReceived time.Time `ch:"first_received"`
	LastReceived  time.Time `ch:"last_received"`
}

// Conflicts returns every conflict.
func (s *Store) Conflicts(ctx context.Context) ([]Conflict, error) {
	conflicts, err := readRows[Conflict](ctx, s, queryConflicts)
	if err != nil {
		return nil, fmt.Errorf("read conflicts: %w", err)
	}
	return conflicts, nil
}
