package schema

import "time"

// Severity grades a violation or finding (AAP section 7.5).
type Severity string

// The severities of AAP section 7.5.
const (
	SeverityCritical Severity = "CRITICAL"
	SeverityHigh     Severity = "HIGH"
	SeverityMedium   Severity = "MEDIUM"
)

// The six violation types of AAP section 7.5. Violations contain no other types.
const (
	UnboundedAction  = "UNBOUNDED_ACTION"
	ForbiddenAction  = "FORBIDDEN_ACTION"
	MissedEscalation = "MISSED_ESCALATION"
	UndeclaredValue  = "UNDECLARED_VALUE"
	CardExpired      = "CARD_EXPIRED"
	CardMismatch     = "CARD_MISMATCH"
)

// The types of findings: AAP section 7.5 does not have them, and profile spec reports them in
// addition.
const (
	AgentMismatch           = "AGENT_MISMATCH"
	BadSignature            = "BAD_SIGNATURE"
	CardRevoked             = "CARD_REVOKED"
	DeniedButActed          = "DENIED_BUT_ACTED"
	ValueLimitExceeded      = "VALUE_LIMIT_EXCEEDED"
	ValueCurrencyMismatch   = "VALUE_CURRENCY_MISMATCH"
	ApprovalConditionBroken = "APPROVAL_CONDITION_BROKEN"
	AdvisoryExecuted        = "ADVISORY_EXECUTED"
	TriggerMisreported      = "TRIGGER_MISREPORTED"
	AmbiguousField          = "AMBIGUOUS_FIELD"
	Backdated               = "BACKDATED"
	CategoryEvasion         = "CATEGORY_EVASION"
	CategoryMismatch        = "CATEGORY_MISMATCH"
	CardSuperseded          = "CARD_SUPERSEDED"
	TimeImplausible         = "TIME_IMPLAUSIBLE"
	MissingSignature        = "MISSING_SIGNATURE"
)

// Findings of the message-integrity RFC (section 1): evidence of its threats in a trace. They
// occur only where the agent's messages must follow the rules of the RFC.
const (
	SelfInstruction    = "SELF_INSTRUCTION"    // T1: acts without an authenticated instruction
	SelfValidation     = "SELF_VALIDATION"     // T2: shows or cites a tool result that was not authenticated
	RelayedInstruction = "RELAYED_INSTRUCTION" // T3: does more than another agent may ask for
	IntentEscalation   = "INTENT_ESCALATION"   // T4: does more than the message permits
	UngroundedClaim    = "UNGROUNDED_CLAIM"    // T5: tags a claim [G] without an authenticated tool result
	InlineToolResult   = "INLINE_TOOL_RESULT"  // T6: a tool result is written as text
)

// Findings of a session verdict (AAP section 7.2, level 2). A session verdict also has
// DeniedButActed, ApprovalConditionBroken and TimeImplausible, which a single trace can show as
// well.
const (
	TraceGap             = "TRACE_GAP"             // a sequence number or a prior trace that never arrived
	TraceOrder           = "TRACE_ORDER"           // prior_trace_ids form a circle, or name a later trace or one of another agent
	TurnOrder            = "TURN_ORDER"            // conversation_turn contradicts the order of the session
	EscalationUnanswered = "ESCALATION_UNANSWERED" // required, and never answered
	ActedBeforeAnswer    = "ACTED_BEFORE_ANSWER"   // executed while its escalation was pending
	ContradictoryAnswer  = "CONTRADICTORY_ANSWER"  // one trace reports an approval and a denial
	NoInclusionProof     = "NO_INCLUSION_PROOF"    // the card commits to a Merkle log, and no log includes the bundle
	ActionLoop           = "ACTION_LOOP"           // the same write, transfer, refusal or read again and again
)

// Warnings: non-critical remarks of a verdict.
const (
	WarnNearBoundary            = "near_boundary"
	WarnLowBehavioralSimilarity = "low_behavioral_similarity"
	WarnEscalationTimeout       = "escalation_timeout"
	WarnLogTrigger              = "log_trigger"
	WarnUncomparable            = "uncomparable"
	WarnUnparsedCondition       = "unparsed_condition"
	WarnUncheckedSignature      = "unchecked_signature"
	WarnUnconfirmedTrigger      = "unconfirmed_trigger" // the agent reports a match that the trace does not show
)

// Recommendation is the action that a principal should take about a trace.
type Recommendation string

// The three recommendations.
const (
	Proceed Recommendation = "proceed"
	Review  Recommendation = "review"
	Deny    Recommendation = "deny"
)

// VerdictStatus says whether a trace could be judged.
type VerdictStatus string

// The two statuses of a verdict.
const (
	StatusJudged      VerdictStatus = "judged"
	StatusCardUnknown VerdictStatus = "card_unknown"
)

// Remark is a violation, a finding or a warning; all have the same shape. Severity is empty for
// a warning. Field is the place in the trace in dotted form ("action.name"), empty where there
// is none.
type Remark struct {
	Type        string   `json:"type"`
	Severity    Severity `json:"severity,omitempty"`
	Description string   `json:"description"`
	Field       string   `json:"trace_field,omitempty"`
}

// Verdict is a verification result (AAP section 7.4) with the additions of profile spec.
// Verified is true exactly when Violations is empty and Status is judged.
type Verdict struct {
	Verified          bool           `json:"verified"`
	Status            VerdictStatus  `json:"status"`
	RecommendedAction Recommendation `json:"recommended_action"`
	TraceID           string         `json:"trace_id"`
	AgentID           string         `json:"agent_id"`
	CardID            string         `json:"card_id"`
	Timestamp         time.Time      `json:"timestamp"` // of verification
	Violations        []Remark       `json:"violations"`
	Warnings          []Remark       `json:"warnings"`
	Findings          []Remark       `json:"findings"`
	SimilarityScore   float64        `json:"similarity_score"` // 0..1, four decimals
	Metadata          Metadata       `json:"verification_metadata"`
}

// Metadata is verification_metadata of AAP section 7.4.
type Metadata struct {
	AlgorithmVersion string            `json:"algorithm_version"`
	EngineVersion    string            `json:"engine_version"`
	Profile          string            `json:"profile"`
	Methodology      string            `json:"methodology,omitempty"`    // where a threshold was changed (AAP section 8.3)
	CardDigest       Digest            `json:"card_digest"`              // zero when the card is unknown
	CardRevokedAt    time.Time         `json:"card_revoked_at,omitzero"` // where the card's revocation led to a finding
	TraceDigest      Digest            `json:"trace_digest"`             // with card, its revocation, engine version and profile it identifies the verdict
	ChecksPerformed  []string          `json:"checks_performed"`
	Similarity       SimilarityDetails `json:"similarity_details"`
	GroundedClaims   int               `json:"grounded_claims,omitzero"` // of the selection reasoning, by their tags (message-integrity RFC, section 6)
	InferredClaims   int               `json:"inferred_claims,omitzero"`
	AbsentTriggers   []int             `json:"absent_triggers,omitempty"` // indexes of the triggers whose field the trace lacks
}

// SimilarityDetails explains SimilarityScore (AAP section 7.4).
type SimilarityDetails struct {
	Similarities   []float64 `json:"similarities"`
	MeanSimilarity float64   `json:"mean_similarity"`
	Trend          float64   `json:"trend"`
}

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

// LoopDetected is the type of a LoopAlert.
const LoopDetected string = "loop_detected"

// LoopAlert says that a session which may still run has become a loop: the finding ActionLoop. The
// verdict on the session's part has the finding again, about the same trace, with the count of the
// whole run. AlertID is stable over replays.
type LoopAlert struct {
	AlertID            Digest         `json:"alert_id"`
	AlertType          string         `json:"alert_type"` // LoopDetected
	AgentID            string         `json:"agent_id"`
	CardID             string         `json:"card_id"`
	SessionID          string         `json:"session_id"`
	DetectionTimestamp time.Time      `json:"detection_timestamp"` // event time of the trace that made it a loop
	Finding            SessionFinding `json:"finding"`
	TraceDigest        Digest         `json:"trace_digest"` // of that trace
	EngineVersion      string         `json:"engine_version"`
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

// Direction is the category of a drift (AAP section 8.5).
type Direction string

// The four categories of AAP section 8.5, and unknown.
const (
	AutonomyExpansion     Direction = "autonomy_expansion"
	ValueDrift            Direction = "value_drift"
	PrincipalMisalignment Direction = "principal_misalignment"
	CommunicationDrift    Direction = "communication_drift"
	UnknownDirection      Direction = "unknown"
)

// AlertState says what an event about a drift alert reports.
type AlertState string

// The states of a drift alert. An alert is open until it is closed.
const (
	AlertOpened  AlertState = "opened"
	AlertUpdated AlertState = "updated" // more traces show the drift, or another measure does
	AlertClosed  AlertState = "closed"  // the agent behaves as in its baseline again
)

// DriftAlert is one event about a drift alert (AAP section 8.4). An alert opens, may be updated, and
// closes; all of its events have the same AlertID and successive revisions. A replay gives the
// same ids and revisions. AlertID is the SHA-256 of agent, card, the digests of the traces that
// open the alert, engine version and parameters.
//
// An alert over a finished list (operation drift of aap eval) has no events: its members from
// State on are empty and are not encoded.
type DriftAlert struct {
	AlertID            Digest        `json:"alert_id"`
	AlertType          string        `json:"alert_type"` // "drift_detected"
	AgentID            string        `json:"agent_id"`
	CardID             string        `json:"card_id"`
	DetectionTimestamp time.Time     `json:"detection_timestamp"` // event time of the trace that caused this event
	Analysis           DriftAnalysis `json:"analysis"`
	Recommendation     string        `json:"recommendation"`
	TraceIDs           []string      `json:"trace_ids"`
	EngineVersion      string        `json:"engine_version"`
	Mode               string        `json:"mode"`                  // source of the baselines, a mode of aap/drift
	BaselineID         Digest        `json:"baseline_id"`           // the baseline that the traces were compared with
	Methodology        string        `json:"methodology,omitempty"` // how the baseline is chosen and what is tested (AAP section 8.3), and why thresholds differ

	State       AlertState `json:"state,omitempty"`
	Revision    int        `json:"revision,omitempty"`      // 1 when the alert opens, then one more for each event
	OpenedAt    time.Time  `json:"opened_at,omitzero"`      // event time of the trace that opened the alert
	ClosedAt    time.Time  `json:"closed_at,omitzero"`      // event time of the trace that closed it; zero while it is open
	LastTraceID string     `json:"last_trace_id,omitempty"` // the newest trace that shows the drift
	Count       int        `json:"count,omitempty"`         // traces that show the drift so far
	Strength    float64    `json:"strength,omitempty"`      // log10 of the evidence divided by its limit; 0 if the limit is only just reached
	Measures    []string   `json:"measures,omitempty"`      // the measures that show the drift, in the order in which they did
	Summary     string     `json:"summary,omitempty"`       // what changed, from what to what, in one sentence
}

// DriftAnalysis is the analysis block of AAP section 8.4.
type DriftAnalysis struct {
	SimilarityScore    float64     `json:"similarity_score"` // similarity of the streak's last trace, four decimals
	SustainedTraces    int         `json:"sustained_traces"`
	Threshold          float64     `json:"threshold"`
	DriftDirection     Direction   `json:"drift_direction"`
	SpecificIndicators []Indicator `json:"specific_indicators"`
}

// Indicator is one measured sign of drift (AAP section 8.4).
type Indicator struct {
	Indicator   string  `json:"indicator"`
	Baseline    float64 `json:"baseline"`
	Current     float64 `json:"current"`
	Description string  `json:"description"`
}

// Limitations returns the five statements of AAP section 10.1, which every implementation must
// make clear to its users. The tool, the HTTP interface and the bundles all print them from
// here. The caller owns the slice.
func Limitations() []string {
	return []string{
		"AAP does NOT ensure alignment—it provides visibility.",
		"Verified does NOT equal safe.",
		"AP-Trace is sampled, not complete.",
		"Value coherence is relative to declared values.",
		"Tested on transformer-based agents; unknown unknowns exist for other substrates.",
	}
}
