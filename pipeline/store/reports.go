package store

import (
	"context"
	"fmt"
	"iter"
	"reflect"
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
func (r Reader) Trace(ctx context.Context, traceID string) ([]TraceReport, error) {
	id := clickhouse.Named("trace", traceID)
	traces, err := read[StoredTrace](ctx, r.db, fmt.Sprintf("trace %q", traceID), queryTrace, id)
	if err != nil {
		return nil, err
	}
	verdicts, err := read[verdictRow](ctx, r.db, fmt.Sprintf("the verdicts of trace %q", traceID), queryTraceVerdicts, id)
	if err != nil {
		return nil, err
	}
	points, err := read[DriftPoint](ctx, r.db, fmt.Sprintf("the drift points of trace %q", traceID), queryTraceDriftPoints, id)
	if err != nil {
		return nil, err
	}
	bundles, err := read[Bundle](ctx, r.db, fmt.Sprintf("the bundles of trace %q", traceID), queryBundles, bundlesOf("", "", traceID)...)
	if err != nil {
		return nil, err
	}
	reports := make([]TraceReport, len(traces))
	for i, t := range traces {
		report := &reports[i]
		report.Trace = t
		for j := range verdicts {
			if verdicts[j].TraceDigest == t.Digest {
				report.Verdicts = append(report.Verdicts, *verdicts[j].verdict())
			}
		}
		if len(report.Verdicts) > 0 {
			report.Trace.Verdict = &report.Verdicts[0]
		}
		for _, p := range points {
			if p.TraceDigest == t.Digest {
				report.DriftPoints = append(report.DriftPoints, p)
			}
		}
		for _, b := range bundles {
			if b.AgentID != t.AgentID || b.SessionID != t.SessionID || t.Sequence < b.FirstSequence || b.LastSequence < t.Sequence {
				continue
			}
			copies, err := r.BundleCopies(ctx, b.SHA256)
			if err != nil {
				return nil, err
			}
			report.Bundles, report.Copies = append(report.Bundles, b), append(report.Copies, copies...)
		}
	}
	return reports, nil
}

// Counts holds the numbers of visible rows, and the number of trace rows with duplicates.
type Counts struct {
	Traces      uint64 `ch:"traces"`
	TraceRows   uint64 `ch:"trace_rows"` // including duplicates that are not merged yet
	Conflicts   uint64 `ch:"conflicts"`  // (agent_id, trace_id) with several contents
	Verdicts    uint64 `ch:"verdicts"`   // current ones: one for each trace
	CardUnknown uint64 `ch:"card_unknown"`
	DriftPoints uint64 `ch:"drift_points"`
	DriftAlerts uint64 `ch:"drift_alerts"` // an alert counts once, however many events it has
	Bundles     uint64 `ch:"bundles"`
	DeadLetters uint64 `ch:"dead_letters"`
}

func (r Reader) Counts(ctx context.Context) (Counts, error) {
	rows, err := read[Counts](ctx, r.db, "the numbers of rows", queryCounts)
	if err != nil {
		return Counts{}, err
	}
	return rows[0], nil
}

// Violations returns the ids of the traces whose current verdict has a violation, by the type of
// the violation.
func (r Reader) Violations(ctx context.Context) (map[string][]string, error) {
	return r.remarks(ctx, "violations")
}

// Findings returns the ids of the traces whose current verdict has a finding, by the type of the
// finding.
func (r Reader) Findings(ctx context.Context) (map[string][]string, error) {
	return r.remarks(ctx, "findings")
}

// remarks reads a view of remarks: violations, findings or warnings.
func (r Reader) remarks(ctx context.Context, view string) (map[string][]string, error) {
	type row struct {
		Type   string   `ch:"type"`
		Traces []string `ch:"traces"`
	}
	traces := map[string][]string{}
	for remark, err := range each[row](ctx, r.db, view, queryRemarks, clickhouse.Named("view", view)) {
		if err != nil {
			return nil, err
		}
		traces[remark.Type] = remark.Traces
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

func (r Reader) Conflicts(ctx context.Context) ([]Conflict, error) {
	return read[Conflict](ctx, r.db, "conflicts", queryConflicts)
}

// Column is one column of a result: its name and ClickHouse type.
type Column struct {
	Name string
	Type string
}

// Result is the answer to an operator's query. The caller must range over Rows, exactly once.
type Result struct {
	Columns []Column
	Rows    iter.Seq2[[]any, error] // the values of one row; ends after the first error
}

// Query runs an operator's own statement as the user of the DSN. Only the privileges of that user
// limit it, so open the store with a reader's DSN. Tables are read through FINAL, which hides
// duplicates.
func (r Reader) Query(ctx context.Context, statement string) (*Result, error) {
	ctx, cancel := r.db.FinalContext(ctx)
	rows, err := r.db.Query(ctx, statement)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("query: %w", err)
	}
	types := rows.ColumnTypes()
	result := &Result{Columns: make([]Column, len(types))}
	for i, t := range types {
		result.Columns[i] = Column{Name: t.Name(), Type: t.DatabaseTypeName()}
	}
	result.Rows = func(yield func([]any, error) bool) {
		defer cancel()
		defer rows.Close()
		for rows.Next() {
			pointers, values := make([]any, len(types)), make([]any, len(types))
			for i, t := range types {
				pointers[i] = reflect.New(t.ScanType()).Interface()
			}
			if err := rows.Scan(pointers...); err != nil {
				yield(nil, fmt.Errorf("query: %w", err))
				return
			}
			for i, p := range pointers {
				values[i] = reflect.ValueOf(p).Elem().Interface()
			}
			if !yield(values, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(nil, fmt.Errorf("query: %w", err))
		}
	}
	return result, nil
}
