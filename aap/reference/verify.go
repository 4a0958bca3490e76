package reference

import (
	"fmt"
	"time"
)

// The SDK's thresholds.
const (
	nearBoundary         = 0.35
	behavioralSimilarity = 0.5
)

// severities of the SDK's violations.
var severities = map[string]string{
	"unbounded_action": "high", "forbidden_action": "critical", "missed_escalation": "high",
	"undeclared_value": "medium", "card_expired": "high", "card_mismatch": "critical",
}

// checksPerformed are the checks that every verification lists.
var checksPerformed = []string{
	"card_reference", "card_expiration", "autonomy", "forbidden", "escalation", "values", "behavioral_similarity",
}

// Verification is the SDK's result of verifying one trace.
type Verification struct {
	Verified          bool     `json:"verified"`
	RecommendedAction string   `json:"recommended_action"` // deny, review, proceed
	TraceID           Echo     `json:"trace_id"`           // as in the trace; "" where it has none
	CardID            Echo     `json:"card_id"`
	Timestamp         string   `json:"timestamp"`
	Violations        []Remark `json:"violations"`
	Warnings          []Remark `json:"warnings"`
	SimilarityScore   Number   `json:"similarity_score"`
	Metadata          Metadata `json:"verification_metadata"`
}

// Remark is a violation or a warning; a warning has no severity.
type Remark struct {
	Type        string `json:"type"`
	Severity    string `json:"severity,omitempty"`
	Description string `json:"description"`
	Field       string `json:"trace_field,omitempty"`
}

// Metadata is verification_metadata: the SDK's, with members that distinguish this result from
// the SDK's own.
type Metadata struct {
	AlgorithmVersion string            `json:"algorithm_version"`
	EngineVersion    string            `json:"engine_version"`
	Profile          string            `json:"profile"`
	ChecksPerformed  []string          `json:"checks_performed"`
	Similarity       SimilarityDetails `json:"similarity_details"`
}

// SimilarityDetails explains SimilarityScore.
type SimilarityDetails struct {
	Score            Number `json:"similarity_score"`
	Method           string `json:"method"`
	AlgorithmVersion string `json:"algorithm_version"`
}

// Verify judges one trace against one card as of now.
func Verify(trace, card any, now time.Time) (v Verification, err error) {
	defer catch(&err)
	return newJudge(trace, card, now).verify(), nil
}

// judge is the state of one verification.
type judge struct {
	trace, card, autonomy, action, decision value
	now                                     time.Time
	violations, warnings                    []Remark
}

func newJudge(trace, card any, now time.Time) *judge {
	j := &judge{
		trace: value{trace, "trace"}, card: value{card, "card"}, now: now,
		violations: []Remark{}, warnings: []Remark{},
	}
	j.action, j.decision = j.trace.get("action"), j.trace.get("decision")
	j.autonomy = autonomyOf(j.card)
	return j
}

func (j *judge) verify() Verification {
	j.checkReference()
	j.checkExpiry()
	j.checkAutonomy()
	j.checkForbidden()
	j.checkEscalation()
	j.checkValues()
	j.checkBoundaries()
	score := j.checkSimilarity()
	return Verification{
		Verified:          len(j.violations) == 0,
		RecommendedAction: j.recommendation(),
		TraceID:           j.trace.get("trace_id").echoOrEmpty(),
		CardID:            j.card.get("card_id").echoOrEmpty(),
		Timestamp:         j.now.UTC().Format(isoLayout),
		Violations:        j.violations,
		Warnings:          j.warnings,
		SimilarityScore:   Number(score),
		Metadata: Metadata{
			AlgorithmVersion: AlgorithmVersion, EngineVersion: EngineVersion, Profile: "reference",
			ChecksPerformed: checksPerformed,
			Similarity:      SimilarityDetails{Score: Number(score), Method: "cosine", AlgorithmVersion: AlgorithmVersion},
		},
	}
}

func (j *judge) violate(kind, field, format string, args ...any) {
	j.violations = append(j.violations, Remark{kind, severities[kind], fmt.Sprintf(format, args...), field})
}

func (j *judge) warn(kind, field, format string, args ...any) {
	j.warnings = append(j.warnings, Remark{Type: kind, Description: fmt.Sprintf(format, args...), Field: field})
}

func (j *judge) recommendation() string {
	switch {
	case len(j.violations) > 0:
		return "deny"
	case len(j.warnings) > 0:
		return "review"
	}
	return "proceed"
}
