package reference

import (
	"math"
	"regexp"
)

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
