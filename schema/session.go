package schema

import "time"

// SessionVerdict is the result of session verification (AAP section 7.2, level 2):
// what the traces of one session show together that none of them shows alone.
// It is about one part of a session: a session that goes on after it was sealed
// has another verdict for its next part.
//
// Verified is true exactly when every trace of the part is judged and verified and
// no finding of the session is CRITICAL.
type SessionVerdict struct {
	Verified          bool              `json:"verified"`
	RecommendedAction Recommendation    `json:"recommended_action"` // the gravest of the traces' own and of what the findings ask for
	AgentID           string            `json:"agent_id"`
	SessionID         string            `json:"session_id"`
	Part              int64             `json:"part"` // from 1
	LastPart          bool              `json:"last_part"`
	Timestamp         time.Time         `json:"timestamp"` // when sealing the part was planned, to the second
	Traces            SessionTraces     `json:"traces"`
	Findings          []SessionFinding  `json:"findings"`       // the gravest MaxSessionFindings
	FindingCounts     map[string]int64  `json:"finding_counts"` // of the session, by type, those that are not listed too
	Similarity        SessionSimilarity `json:"similarity"`
	Metadata          SessionMetadata   `json:"verification_metadata"`
}

// MaxSessionFindings is how many findings a session verdict lists; all are counted.
const MaxSessionFindings = 100

// SessionTraces counts the traces of the part, and what their own verdicts hold.
type SessionTraces struct {
	Total       int64            `json:"total"`
	Verified    int64            `json:"verified"`
	CardUnknown int64            `json:"card_unknown"`
	Violations  map[string]int64 `json:"violations"` // by type
	Findings    map[string]int64 `json:"findings"`   // by type
}

// SessionFinding is one finding of a session. TraceID and Field are empty where it
// is about no single trace.
type SessionFinding struct {
	Type        string   `json:"type"`
	Severity    Severity `json:"severity"`
	Description string   `json:"description"`
	TraceID     string   `json:"trace_id,omitempty"`
	Field       string   `json:"trace_field,omitempty"`
}

// SessionSimilarity is the course of the traces' similarity to their card, over
// those that could be judged, in the order of the session; four decimals.
type SessionSimilarity struct {
	Mean  float64 `json:"mean_similarity"`
	Min   float64 `json:"min_similarity"`
	Trend float64 `json:"trend"` // slope of the least-squares line, per trace
}

// SessionMetadata says what made a session verdict, and what it leaves open.
type SessionMetadata struct {
	AlgorithmVersion string   `json:"algorithm_version"`
	EngineVersion    string   `json:"engine_version"`
	Profile          string   `json:"profile"`
	ChecksPerformed  []string `json:"checks_performed"`
	Unchecked        []string `json:"unchecked"` // what a bound kept from being checked, in words; empty: nothing
}
