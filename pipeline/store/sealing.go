package store

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/plumbline/plumbline/schema"
)

// The statuses of a session.
const (
	SessionOpen   = "open"
	SessionSealed = "sealed"
	SessionHeld   = "held" // rows and receipts differ: nothing is sealed until that is resolved
)

// Session is what the exporter knows about one session.
type Session struct {
	Owned
	AgentID       string    `ch:"agent_id"`
	SessionID     string    `ch:"session_id"`
	Version       uint64    `ch:"version"` // grows with every change: a read returns the highest
	Status        string    `ch:"status"`
	Reason        string    `ch:"reason"` // why it was sealed or held
	Traces        uint64    `ch:"traces"`
	Bundles       uint32    `ch:"bundles"`
	Ended         bool      `ch:"ended"`
	FirstEvent    time.Time `ch:"first_event"`
	LastEvent     time.Time `ch:"last_event"`
	FirstSequence uint64    `ch:"first_sequence"`
	LastSequence  uint64    `ch:"last_sequence"`
	UpdatedAt     time.Time `ch:"updated_at"`
}

// InsertSessions stores sessions. A read returns the highest version of a session.
func (w Writer) InsertSessions(ctx context.Context, sessions []Session) error {
	return insertRows(ctx, w, "sessions", sessions)
}

// Bundle is one sealed AIVS bundle.
type Bundle struct {
	Owned
	AgentID        string        `ch:"agent_id"`
	SessionID      string        `ch:"session_id"`
	Part           uint32        `ch:"part"` // from 1
	SHA256         schema.Digest `ch:"sha256"`
	LastPart       bool          `ch:"last_part"`
	Path           string        `ch:"path"` // within the bundle directory
	Bytes          uint64        `ch:"bytes"`
	ActionCount    uint64        `ch:"action_count"` // rows of the audit log
	TraceCount     uint64        `ch:"trace_count"`
	Redactions     uint64        `ch:"redactions"`
	FirstEvent     time.Time     `ch:"first_event"`
	LastEvent      time.Time     `ch:"last_event"`
	FirstSequence  uint64        `ch:"first_sequence"`
	LastSequence   uint64        `ch:"last_sequence"`
	TraceIDs       []string      `ch:"trace_ids"`
	ChainHash      string        `ch:"chain_hash"`      // hexadecimal
	PreviousSHA256 string        `ch:"previous_sha256"` // hexadecimal; empty in the first part
	KeyID          string        `ch:"key_id"`
	Reason         string        `ch:"reason"` // ended, idle, requested, schedule, rotation
	ExportedAt     time.Time     `ch:"exported_at"`
}

func (w Writer) InsertBundles(ctx context.Context, bundles []Bundle) error {
	return insertRows(ctx, w, "bundles", bundles)
}

// Bundles returns the bundles of a session, ordered by part. If agentID is empty, it returns
// those of every session.
func (r Reader) Bundles(ctx context.Context, agentID, sessionID string) ([]Bundle, error) {
	return read[Bundle](ctx, r.db, "bundles", queryBundles, bundlesOf(agentID, sessionID, "")...)
}

// EarlierQuery selects bundles of a session: those of the parts before Part whose events overlap a range,
// and, where it has trace ids, which hold one of them.
type EarlierQuery struct {
	Session  SessionKey
	Part     int64
	From, To time.Time
	TraceIDs []string
}

// EarlierBundle is where a bundle is, and the range of its events.
type EarlierBundle struct {
	Part       uint32        `ch:"part"`
	Path       string        `ch:"path"` // within the bundle directory
	SHA256     schema.Digest `ch:"sha256"`
	FirstEvent time.Time     `ch:"first_event"`
	LastEvent  time.Time     `ch:"last_event"`
}

// EarlierBundles returns the bundles that a query selects, ordered by part.
func (r Reader) EarlierBundles(ctx context.Context, q EarlierQuery) ([]EarlierBundle, error) {
	return read[EarlierBundle](ctx, r.db, "the earlier bundles of a session", queryEarlierBundles,
		clickhouse.Named("agent", q.Session.AgentID), clickhouse.Named("session", q.Session.SessionID), clickhouse.Named("part", uint32(q.Part)),
		clickhouse.Named("from", q.From.UnixNano()), clickhouse.Named("to", q.To.UnixNano()), clickhouse.Named("traces", append([]string{}, q.TraceIDs...)))
}

// bundlesOf returns the arguments of queryBundles. An empty one selects all bundles.
func bundlesOf(agentID, sessionID, traceID string) []any {
	return []any{clickhouse.Named("agent", agentID), clickhouse.Named("session", sessionID), clickhouse.Named("trace", traceID)}
}

// SealRun is one attempt to seal a session, with every row that differs from its receipt.
type SealRun struct {
	Owned
	AgentID    string    `ch:"agent_id"`
	SessionID  string    `ch:"session_id"`
	RunID      string    `ch:"run_id"`
	StartedAt  time.Time `ch:"started_at"`
	FinishedAt time.Time `ch:"finished_at"`
	Outcome    string    `ch:"outcome"` // sealed, held, failed
	Reason     string    `ch:"reason"`
	Traces     uint64    `ch:"traces"`
	Cut        uint64    `ch:"cut"`          // highest stream sequence covered
	Changed    []string  `ch:"changed"`      // trace ids whose bytes differ from their receipt
	Missing    []string  `ch:"missing"`      // digests with a receipt but without a row, hexadecimal
	Foreign    []string  `ch:"foreign_rows"` // trace ids without a receipt
	SHA256     string    `ch:"sha256"`       // hexadecimal; empty unless sealed
}

func (w Writer) InsertSealRuns(ctx context.Context, runs []SealRun) error {
	return insertRows(ctx, w, "seal_runs", runs)
}

// BundleCopy is a file of the bundle directory that has a known copy at another destination: a
// bundle, or a file next to it.
type BundleCopy struct {
	Owned
	Destination string        `ch:"destination"` // nats:bundles, https://host/bucket/prefix
	Path        string        `ch:"path"`        // below the bundle directory, with slashes
	SHA256      schema.Digest `ch:"sha256"`
	Bytes       uint64        `ch:"bytes"`
	DeliveredAt time.Time     `ch:"delivered_at"`
}

// InsertBundleCopies stores what was delivered. If a copy is recorded twice, the earliest row
// stays.
func (w Writer) InsertBundleCopies(ctx context.Context, copies []BundleCopy) error {
	return insertRows(ctx, w, "bundle_copies", copies)
}

// BundleCopies returns where the copies of a file with these bytes are.
func (r Reader) BundleCopies(ctx context.Context, digest schema.Digest) ([]BundleCopy, error) {
	return read[BundleCopy](ctx, r.db, fmt.Sprintf("the copies of bundle %s", digest), queryBundleCopies, clickhouse.Named("sha256", digest.String()))
}

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

func (w Writer) InsertSessionVerdicts(ctx context.Context, verdicts []*schema.SessionVerdict) error {
	rows := make([]sessionVerdictRow, len(verdicts))
	for i, v := range verdicts {
		row := &rows[i]
		*row = sessionVerdictRow{
			AgentID: v.AgentID, SessionID: v.SessionID, Part: uint32(v.Part),
			EngineVersion: v.Metadata.EngineVersion, Profile: v.Metadata.Profile, VerifiedAt: v.Timestamp,
			LastPart: v.LastPart, Verified: v.Verified, RecommendedAction: string(v.RecommendedAction),
			Traces: uint64(v.Traces.Total), VerifiedTraces: uint64(v.Traces.Verified), UnknownCards: uint64(v.Traces.CardUnknown),
			ViolationCounts: countsAs[uint64](v.Traces.Violations), TraceFindings: countsAs[uint64](v.Traces.Findings),
			FindingCounts: countsAs[uint64](v.FindingCounts),
			Mean:          v.Similarity.Mean, Min: v.Similarity.Min, Trend: v.Similarity.Trend,
			AlgorithmVersion: v.Metadata.AlgorithmVersion, ChecksPerformed: v.Metadata.ChecksPerformed, Unchecked: v.Metadata.Unchecked,
		}
		for j := range v.Findings {
			f := &v.Findings[j]
			row.Types = append(row.Types, f.Type)
			row.Severities = append(row.Severities, string(f.Severity))
			row.Descriptions = append(row.Descriptions, f.Description)
			row.TraceIDs = append(row.TraceIDs, f.TraceID)
			row.Fields = append(row.Fields, f.Field)
		}
	}
	return insertRows(ctx, w, "session_verdicts", rows)
}

// SessionVerdicts returns the verdicts on a session, ordered by part. If agentID is empty, it
// returns those on every session.
func (r Reader) SessionVerdicts(ctx context.Context, agentID, sessionID string) ([]*schema.SessionVerdict, error) {
	var verdicts []*schema.SessionVerdict
	for row, err := range each[sessionVerdictRow](ctx, r.db, "session verdicts", querySealedVerdicts,
		clickhouse.Named("agent", agentID), clickhouse.Named("session", sessionID)) {
		if err != nil {
			return nil, err
		}
		verdicts = append(verdicts, row.verdict())
	}
	return verdicts, nil
}

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

func countsAs[To, From int64 | uint64](from map[string]From) map[string]To {
	to := make(map[string]To, len(from))
	for kind, n := range from {
		to[kind] = To(n)
	}
	return to
}
