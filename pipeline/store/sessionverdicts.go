package store

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/plumbline/plumbline/schema"
)

// sessionVerdictRow is a row of table session_verdicts.
type sessionVerdictRow struct {
	Owned
	AgentID           string            `ch:"agent_id"`
	SessionID         string            `ch:"session_id"`
	Part              uint32            `ch:"part"`
	EngineVersion     string            `ch:"engine_version"`
	Profile           string            `ch:"profile"`
	VerifiedAt        time.Time         `ch:"verified_at"`
	LastPart          bool              `ch:"last_part"`
	Verified          bool              `ch:"verified"`
	RecommendedAction string            `ch:"recommended_action"`
	Traces            uint64            `ch:"traces"`
	VerifiedTraces    uint64            `ch:"verified_traces"`
	UnknownCards      uint64            `ch:"unknown_cards"`
	ViolationCounts   map[string]uint64 `ch:"violation_counts"`
	TraceFindings     map[string]uint64 `ch:"trace_findings"`
	FindingCounts     map[string]uint64 `ch:"finding_counts"`
	Types             []string          `ch:"findings.type"`
	Severities        []string          `ch:"findings.severity"`
	Descriptions      []string          `ch:"findings.description"`
	TraceIDs          []string          `ch:"findings.trace_id"`
	Fields            []string          `ch:"findings.trace_field"`
	Mean              float64           `ch:"mean_similarity"`
	Min               float64           `ch:"min_similarity"`
	Trend             float64           `ch:"trend"`
	AlgorithmVersion  string            `ch:"algorithm_version"`
	ChecksPerformed   []string          `ch:"checks_performed"`
	Unchecked         []string          `ch:"unchecked"`
}

// InsertSessionVerdicts stores verdicts on sessions. It is idempotent: duplicates collapse.
func (s *Store) InsertSessionVerdicts(ctx context.Context, verdicts []*schema.SessionVerdict) error {
	rows := make([]sessionVerdictRow, len(verdicts))
	for i, v := range verdicts {
		rows[i] = newSessionVerdictRow(v)
	}
	return insertRows(ctx, s, "session_verdicts", rows)
}

// SessionVerdicts returns the verdicts on a session, ordered by part. If agentID is empty, it
// returns those on every session.
func (s *Store) SessionVerdicts(ctx context.Context, agentID, sessionID string) ([]*schema.SessionVerdict, error) {
	rows, err := readRows[sessionVerdictRow](ctx, s, querySealedVerdicts,
		clickhouse.Named("agent", agentID), clickhouse.Named("session", sessionID))
	if err != nil {
		return nil, fmt.Errorf("read session verdicts: %w", err)
	}
	verdicts := make([]*schema.SessionVerdict, len(rows))
	for i := range rows {
		verdicts[i] = rows[i].verdict()
	}
	return verdicts, nil
}

func newSessionVerdictRow(v *schema.SessionVerdict) sessionVerdictRow {
	row := sessionVerdictRow{
		AgentID: v.AgentID, SessionID: v.SessionID, Part: uint32(v.Part),
		EngineVersion: v.Metadata.EngineVersion, Profile: v.Metadata.Profile, VerifiedAt: v.Timestamp,
		LastPart: v.LastPart, Verified: v.Verified, RecommendedAction: string(v.RecommendedAction),
		Traces: uint64(v.Traces.Total), VerifiedTraces: uint64(v.Traces.Verified), UnknownCards: uint64(v.Traces.CardUnknown),
		ViolationCounts: countsAs[uint64](v.Traces.Violations), TraceFindings: countsAs[uint64](v.Traces.Findings),
		FindingCounts: countsAs[uint64](v.FindingCounts),
		Mean:          v.Similarity.Mean, Min: v.Similarity.Min, Trend: v.Similarity.Trend,
		AlgorithmVersion: v.Metadata.AlgorithmVersion, ChecksPerformed: v.Metadata.ChecksPerformed, Unchecked: v.Metadata.Unchecked,
	}
	for i := range v.Findings {
		f := &v.Findings[i]
		row.Types = append(row.Types, f.Type)
		row.Severities = append(row.Severities, string(f.Severity))
		row.Descriptions = append(row.Descriptions, f.Description)
		row.TraceIDs = append(row.TraceIDs, f.TraceID)
		row.Fields = append(row.Fields, f.Field)
	}
	return row
}

// verdict returns the value that was stored.
func (r *sessionVerdictRow) verdict() *schema.SessionVerdict {
	v := &schema.SessionVerdict{
		Verified: r.Verified, RecommendedAction: schema.Recommendation(r.RecommendedAction),
		AgentID: r.AgentID, SessionID: r.SessionID, Part: int64(r.Part), LastPart: r.LastPart, Timestamp: r.VerifiedAt,
		Traces: schema.SessionTraces{
			Total: int64(r.Traces), Verified: int64(r.VerifiedTraces), CardUnknown: int64(r.UnknownCards),
			Violations: countsAs[int64](r.ViolationCounts), Findings: countsAs[int64](r.TraceFindings),
		},
		Findings:      make([]schema.SessionFinding, len(r.Types)),
		FindingCounts: countsAs[int64](r.FindingCounts),
		Similarity:    schema.SessionSimilarity{Mean: r.Mean, Min: r.Min, Trend: r.Trend},
		Metadata: schema.SessionMetadata{
			AlgorithmVersion: r.AlgorithmVersion, EngineVersion: r.EngineVersion, Profile: r.Profile,
			ChecksPerformed: r.ChecksPerformed, Unchecked: r.Unchecked,
		},
	}
	for i := range r.Types {
		v.Findings[i] = schema.SessionFinding{
			Type: r.Types[i], Severity: schema.Severity(r.Severities[i]), Description: r.Descriptions[i],
			TraceID: r.TraceIDs[i], Field: r.Fields[i],
		}
	}
	return v
}

// countsAs copies counts by type.
func countsAs[To, From int64 | uint64](from map[string]From) map[string]To {
	to := make(map[string]To, len(from))
	for kind, n := range from {
		to[kind] = To(n)
	}
	return to
}
