package reference

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline/plumbline/aap/similarity"
)

// EngineVersion is the version of this implementation of the SDK's behaviour.
const EngineVersion = "plumbline-reference/2"

// AlgorithmVersion is the SDK's own version of its algorithm.
const AlgorithmVersion = "1.2.0"

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
	j := &judge{
		trace: value{trace, "trace"}, card: value{card, "card"}, now: now,
		violations: []Remark{}, warnings: []Remark{},
	}
	j.action, j.decision = j.trace.get("action"), j.trace.get("decision")
	j.autonomy = autonomyOf(j.card)

	// The reference: two absent ids differ, two empty ones do not. The comparison is JavaScript's
	// === for values from different documents: two arrays or objects are never identical. Objects
	// are pointers here.
	named, given := j.trace.get("card_id"), j.card.get("card_id")
	if given.missing() {
		given.v = ""
	}
	_, listed := named.v.([]any)
	_, listedToo := given.v.([]any)
	if listed || listedToo || named.v != given.v {
		j.violate("card_mismatch", "", "Trace references card '%s' but verified against '%s'", named.string(), given.string())
	}

	// The expiry, by the wall clock of the verifier. An expiry that is no date is ignored.
	expires := j.card.get("expires_at")
	if expires.truthy() && float64(j.now.UnixMilli()) > expires.milliseconds() {
		j.violate("card_expired", "", "Alignment Card expired at %s", expires.string())
	}

	// The autonomy, only of actions that the trace calls bounded.
	name := j.action.get("name")
	bounded := j.autonomy.get("bounded_actions").or(value{[]any{}, j.autonomy.path})
	if j.action.get("category").is("bounded") && name.truthy() && !matches(name, bounded) {
		j.violate("unbounded_action", "action.name",
			"Action '%s' not in bounded_actions: %s", name.string(), stringify(bounded.v))
	}
	forbidden := j.autonomy.get("forbidden_actions").or(value{[]any{}, j.autonomy.path})
	if name.truthy() && matches(name, forbidden) {
		j.violate("forbidden_action", "action.name", "Action '%s' is in forbidden_actions", name.string())
	}

	j.checkEscalation()

	declared := valueIDs(j.card.get("values").get("declared"))
	known := setOf(declared)
	for _, id := range valueIDs(j.decision.get("values_applied")) {
		if !known[id] {
			j.violate("undeclared_value", "decision.values_applied",
				"Value '%s' applied but not in declared values: %s", id, stringify(declared))
		}
	}

	j.checkBoundaries()
	score := j.checkSimilarity()
	recommended := "proceed"
	if len(j.violations) > 0 {
		recommended = "deny"
	} else if len(j.warnings) > 0 {
		recommended = "review"
	}
	return Verification{
		Verified:          len(j.violations) == 0,
		RecommendedAction: recommended,
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
	}, nil
}

// judge is the state of one verification.
type judge struct {
	trace, card, autonomy, action, decision value
	now                                     time.Time
	violations, warnings                    []Remark
}

func (j *judge) violate(kind, field, format string, args ...any) {
	j.violations = append(j.violations, Remark{kind, severities[kind], fmt.Sprintf(format, args...), field})
}

func (j *judge) warn(kind, field, format string, args ...any) {
	j.warnings = append(j.warnings, Remark{Type: kind, Description: fmt.Sprintf(format, args...), Field: field})
}

// matches reports whether every part of a compound name matches an entry. An empty part matches
// every list.
func matches(name, list value) bool {
	for _, part := range strings.Split(name.text(), ", ") {
		if part = trim(part); part != "" && !listed(part, list) {
			return false
		}
	}
	return true
}

// listed reports whether an entry equals part or has the form "part: description".
func listed(part string, list value) bool {
	if _, ok := list.v.([]any); !ok {
		list.throw("%s is not an array", list.kind())
	}
	for _, entry := range list.each() {
		if nested, ok := entry.v.([]any); ok && slices.Index(nested, any(":")) < 1 {
			continue // the only kind of entry that is not a text and does not throw: a list without ":" after its first element
		}
		text := entry.text()
		if text == part {
			return true
		}
		if colon := strings.Index(text, ":"); colon > 0 && trim(text[:colon]) == part {
			return true
		}
	}
	return false
}

// checkEscalation evaluates every trigger, whatever its action is.
func (j *judge) checkEscalation() {
	escalation := j.trace.get("escalation")
	for _, trigger := range j.autonomy.get("escalation_triggers").eachOrNone() {
		condition := trigger.get("condition")
		if !evaluate(condition, j.trace).Matched {
			continue
		}
		if !escalation.try("required").truthy() {
			j.violate("missed_escalation", "escalation.required",
				"Trigger '%s' matched but escalation not required", condition.string())
		} else if escalation.get("escalation_status").is("timeout") {
			j.warn("escalation_timeout", "escalation.escalation_status",
				"Escalation for trigger '%s' timed out", condition.string())
		}
	}
}

// checkBoundaries warns about low confidence and about low scores, including those of rejected
// alternatives.
func (j *judge) checkBoundaries() {
	if confidence := j.decision.get("confidence"); low(confidence) {
		j.warn("near_boundary", "decision.confidence",
			"Decision confidence %s below threshold %v", confidence.fixed(2), nearBoundary)
	}
	alternatives := j.decision.get("alternatives_considered")
	if _, text := alternatives.v.(string); text {
		return // characters have no score
	}
	for i := 0; float64(i) < alternatives.get("length").number(); i++ {
		alternative := alternatives.try(strconv.Itoa(i))
		if score := alternative.get("score"); low(score) {
			j.warn("near_boundary", fmt.Sprintf("decision.alternatives_considered[%d].score", i),
				"Alternative '%s' score %s near boundary", alternative.get("option_id").string(), score.fixed(2))
		}
	}
}

func low(score value) bool { return !score.missing() && score.number() < nearBoundary }

// checkSimilarity returns the score, and warns if it is low and nothing is violated.
func (j *judge) checkSimilarity() float64 {
	score := similarity.Round4(cosine(traceFeatures(j.trace), cardFeatures(j.card)))
	if len(j.violations) == 0 && score < behavioralSimilarity {
		j.warn("low_behavioral_similarity", "(computed)",
			"Trace passes structural checks but behavioral similarity (%s) is below threshold (%v)",
			toFixed(score, 2), behavioralSimilarity)
	}
	return score
}

// The three forms of conditions that the SDK supports.
var (
	typeForm    = regexp.MustCompile(`action_type[` + jsSpace + `]*==[` + jsSpace + `]*"([^"]+)"`)
	numericForm = regexp.MustCompile(`^[` + jsSpace + `]*(\w+)[` + jsSpace + `]*([><=!]+)[` + jsSpace + `]*(\d+(?:\.\d+)?)[` + jsSpace + `]*$`)
	fieldForm   = regexp.MustCompile(`^\w+$`)
)

// Match is the result of one condition.
type Match struct {
	Matched bool `json:"matched"`
	Parsed  bool `json:"parsed"` // false: in none of the three forms, so it never matches
}

// Condition evaluates one condition on a trace.
func Condition(condition, trace any) (m Match, err error) {
	defer catch(&err)
	return evaluate(value{condition, "condition"}, value{trace, "trace"}), nil
}

func evaluate(condition, trace value) Match {
	if !condition.truthy() {
		return Match{Parsed: true}
	}
	text := condition.text()
	if form := typeForm.FindStringSubmatch(text); form != nil {
		actual := trace.get("action").get("type")
		return Match{Parsed: true, Matched: actual.is(form[1])}
	}
	if form := numericForm.FindStringSubmatch(text); form != nil {
		return Match{Parsed: true, Matched: compare(trace, form[1], form[2], parseFloat(form[3]))}
	}
	if fieldForm.MatchString(text) {
		context := trace.get("context")
		field := context.try(text).or(context.try("metadata").try(text))
		return Match{Parsed: true, Matched: field.truthy()}
	}
	return Match{}
}

// compare looks up a field in the context, its metadata and the action's parameters, and
// compares it as a number. Unknown operators give false.
func compare(trace value, field, operator string, limit float64) bool {
	context := trace.get("context")
	actual := context.try(field).or(context.try("metadata").try(field))
	if actual.missing() {
		actual = trace.get("action").get("parameters").try(field)
	}
	if actual.missing() {
		return false
	}
	number := parseFloat(actual.string())
	if math.IsNaN(number) {
		return false
	}
	switch operator {
	case ">":
		return number > limit
	case "<":
		return number < limit
	case ">=":
		return number >= limit
	case "<=":
		return number <= limit
	case "==":
		return number == limit
	case "!=":
		return number != limit
	}
	return false
}
