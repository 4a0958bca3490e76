package schema

import "time"

// SessionVerdict is the result of session verification (AAP section 7.2, level 2): findings
// that need several traces of a session. It covers one part of a session. A session that
// continues after it was sealed gets another verdict for its next part.
//
// Verified is true exactly when every trace of the part is judged and verified and no finding
// of the session is CRITICAL.
type SessionVerdict struct {
	Verified          bool              `json:"verified"`
	RecommendedAction Recommendation    `json:"recommended_action"` // the gravest recommendation of the traces and of the findings
	AgentID           string            `json:"agent_id"`
	SessionID         string            `json:"session_id"`
	Part              int64             `json:"part"` // from 1
	LastPart          bool              `json:"last_part"`
	Timestamp         time.Time         `json:"timestamp"` // when sealing the part was planned, to the second
	Traces            SessionTraces     `json:"traces"`
	Findings          []SessionFinding  `json:"findings"`       // the MaxSessionFindings gravest findings
	FindingCounts     map[string]int64  `json:"finding_counts"` // findings of the session by type, including unlisted ones
	Similarity        SessionSimilarity `json:"similarity"`
	Metadata          SessionMetadata   `json:"verification_metadata"`
}

// MaxSessionFindings is how many findings a session verdict lists; all of them are counted.
const MaxSessionFindings = 100

// SessionTraces counts the traces of the part and the contents of their verdicts.
type SessionTraces struct {
	Total       int64            `json:"total"`
	Verified    int64            `json:"verified"`
	CardUnknown int64            `json:"card_unknown"`
	Violations  map[string]int64 `json:"violations"` // by type
	Findings    map[string]int64 `json:"findings"`   // by type
}

// SessionFinding is one finding of a session. TraceID and Field are empty where it concerns no
// single trace.
type SessionFinding struct {
	Type        string   `json:"type"`
	Severity    Severity `json:"severity"`
	Description string   `json:"description"`
	TraceID     string   `json:"trace_id,omitempty"`
	Field       string   `json:"trace_field,omitempty"`
}

// SessionSimilarity summarises the similarity of the traces to their card: those that could be
// judged, in the order of the session, rounded to four decimals.
type SessionSimilarity struct {
	Mean  float64 `json:"mean_similarity"`
	Min   float64 `json:"min_similarity"`
	Trend float64 `json:"trend"` // slope of the least-squares line, per trace
}

// SessionMetadata says how a session verdict was computed and what it leaves open.
type SessionMetadata struct {
	AlgorithmVersion string   `json:"algorithm_version"`
	EngineVersion    string   `json:"engine_version"`
	Profile          string   `json:"profile"`
	ChecksPerformed  []string `json:"checks_performed"`
	Unchecked        []string `json:"unchecked"` // checks that a limit prevented, in words; empty where none was prevented
}
