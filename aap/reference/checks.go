package reference

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/plumbline/plumbline/aap/similarity"
)

// checkReference compares the trace's card_id with the card's. Two absent ids differ; two empty
// ones do not.
func (j *judge) checkReference() {
	named, given := j.trace.get("card_id"), j.card.get("card_id")
	if given.missing() {
		given.v = ""
	}
	if !identical(named.v, given.v) {
		j.violate("card_mismatch", "", "Trace references card '%s' but verified against '%s'", named.string(), given.string())
	}
}

// identical is JavaScript's ===, for values from different documents.
func identical(a, b any) bool {
	if _, list := a.([]any); list {
		return false
	}
	if _, list := b.([]any); list {
		return false
	}
	return a == b // objects are pointers, so two of them are never identical
}

// checkExpiry compares with the wall clock of the verifier. An expiry that is no date is
// ignored.
func (j *judge) checkExpiry() {
	expires := j.card.get("expires_at")
	if expires.truthy() && float64(j.now.UnixMilli()) > expires.milliseconds() {
		j.violate("card_expired", "", "Alignment Card expired at %s", expires.string())
	}
}

// checkAutonomy checks only actions that the trace calls bounded.
func (j *judge) checkAutonomy() {
	name := j.action.get("name")
	bounded := j.autonomy.get("bounded_actions").or(value{[]any{}, j.autonomy.path})
	if j.action.get("category").is("bounded") && name.truthy() && !matches(name, bounded) {
		j.violate("unbounded_action", "action.name",
			"Action '%s' not in bounded_actions: %s", name.string(), stringify(bounded.v))
	}
}

func (j *judge) checkForbidden() {
	name := j.action.get("name")
	forbidden := j.autonomy.get("forbidden_actions").or(value{[]any{}, j.autonomy.path})
	if name.truthy() && matches(name, forbidden) {
		j.violate("forbidden_action", "action.name", "Action '%s' is in forbidden_actions", name.string())
	}
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
		if entry.passedOver() {
			continue
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

// passedOver reports whether an entry is a list without ":" after its first element: the only
// kind of entry that is not a text and does not throw.
func (n value) passedOver() bool {
	nested, ok := n.v.([]any)
	return ok && slices.Index(nested, any(":")) < 1
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

func (j *judge) checkValues() {
	declared := valueIDs(j.card.get("values").get("declared"))
	known := setOf(declared)
	for _, id := range valueIDs(j.decision.get("values_applied")) {
		if !known[id] {
			j.violate("undeclared_value", "decision.values_applied",
				"Value '%s' applied but not in declared values: %s", id, stringify(declared))
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
