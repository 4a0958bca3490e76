package condition

import (
	"slices"
	"strings"
)

// Source gives an evaluator the values of fields.
type Source interface {
	// Values appends every value of field, and nothing where field is absent.
	Values(field *Field, dst []Value) []Value
}

// Quantifier decides about tests of a field with several values.
type Quantifier uint8

// Any is for triggers, All for constraints that must not be broken: each is the stricter
// reading.
const (
	Any Quantifier = iota // the test holds if it holds for any value; not if the field is absent
	All                   // the test holds unless a value breaks it; also if the field is absent
)

// Evaluator evaluates expressions over one Source and notes problems with fields. It reuses its
// memory and is not safe for concurrent use.
type Evaluator struct {
	Source     Source
	Quantifier Quantifier

	Absent       bool     // a field of the last expression has no value
	Undecided    bool     // a test of the last expression was impossible: Absent, or a value of the wrong type or size
	Ambiguous    []string // fields that hold different values, since Reset
	Uncomparable []string // fields whose type does not fit the comparison, since Reset
	Unsearched   []string // fields that matches searched in part without a result, since Reset

	values []Value
	cursor Cursor
	budget int // steps that matches may still use

	trials int              // tests that combine may still evaluate
	most   int              // greatest number of values of a repeated field; 0: no repeated field has different values
	chosen [maxRepeated]int // from 1: the value chosen for a repeated field; 0: none
}

// Reset clears the notes and the budgets; call it when the Source changes to another trace, and
// before the first Eval.
func (ev *Evaluator) Reset() {
	ev.Ambiguous, ev.Uncomparable, ev.Unsearched = ev.Ambiguous[:0], ev.Uncomparable[:0], ev.Unsearched[:0]
	ev.budget, ev.trials = matchBudget, maxTrials
}

// Eval reports whether the expression holds. Where a field has several values, the quantifier
// decides each test. Tests of the same field must then agree on one of the values.
func (ev *Evaluator) Eval(e *Expr) bool {
	ev.Absent, ev.Undecided, ev.most = false, false, 0
	held := e.root.holds(ev)
	if ev.most > 0 && held == (ev.Quantifier == Any) {
		return ev.combine(e, 0)
	}
	return held
}

// combine evaluates an expression with every combination of the values of its repeated fields
// from number i on, until one decides the result. If that takes too many tests, it keeps the
// result of the tests evaluated independently.
func (ev *Evaluator) combine(e *Expr, i int) bool {
	decisive := ev.Quantifier == Any
	if i == e.repeated {
		if ev.trials -= e.tests; ev.trials < 0 {
			return decisive
		}
		return e.root.holds(ev)
	}
	defer func() { ev.chosen[i] = 0 }()
	for ev.chosen[i] = 1; ev.chosen[i] <= ev.most; ev.chosen[i]++ {
		if ev.combine(e, i+1) == decisive {
			return decisive
		}
	}
	return !decisive
}

func (c *chain) holds(ev *Evaluator) bool {
	result := !c.or
	for _, n := range c.operands {
		if n.holds(ev) == c.or {
			result = c.or
		}
	}
	return result
}

func (t *test) holds(ev *Evaluator) bool {
	ev.values = ev.Source.Values(&t.field, ev.values[:0])
	if t.byName {
		ev.values = ev.Source.Values(&actionName, ev.values)
	}
	if len(ev.values) == 0 {
		ev.Absent, ev.Undecided = true, true
		return ev.Quantifier == All
	}
	all := ev.Quantifier == All
	switch {
	case t.byName:
		all = t.op == notEqual // type and name are two readings of one field: != must be the opposite of ==
	case slices.ContainsFunc(ev.values[1:], func(v Value) bool { return !v.Equal(ev.values[0]) }):
		ev.Ambiguous = note(ev.Ambiguous, t.field.Name)
		if t.repeated == 0 {
			break
		}
		ev.most = max(ev.most, len(ev.values))
		if choice := ev.chosen[t.repeated-1]; choice > 0 {
			at := min(choice, len(ev.values))
			ev.values = ev.values[at-1 : at]
		}
	}
	some, every := false, true
	for i := range ev.values {
		held := t.holdsFor(ev, ev.values[i])
		some, every = some || held, every && held
	}
	if all {
		return every
	}
	return some
}

// note adds a field once, up to maxNotes fields.
func note(fields []string, name string) []string {
	if len(fields) == maxNotes || slices.Contains(fields, name) {
		return fields
	}
	return append(fields, name)
}

// uncomparable notes that t cannot be evaluated on a value; t does not hold then.
func (ev *Evaluator) uncomparable(t *test) bool {
	ev.Uncomparable = note(ev.Uncomparable, t.field.Name)
	ev.Undecided = true
	return false
}

// holdsFor evaluates t on one value.
func (t *test) holdsFor(ev *Evaluator, v Value) bool {
	switch t.op {
	case truthy:
		return v.truthy()
	case equal:
		return v.Equal(t.value)
	case notEqual:
		return !v.Equal(t.value)
	case contains:
		return t.contained(ev, v)
	case matches:
		return t.matched(ev, v)
	}
	order, ok := v.compare(t.value)
	if !ok {
		return ev.uncomparable(t)
	}
	switch t.op {
	case less:
		return order < 0
	case lessOrEqual:
		return order <= 0
	case greater:
		return order > 0
	}
	return order >= 0
}

// contained evaluates contains: a part of a text, or an element of an array.
func (t *test) contained(ev *Evaluator, v Value) bool {
	switch {
	case v.Kind == String && t.value.Kind == String:
		return strings.Contains(v.Text, t.value.Text)
	case v.Kind == Array:
		found := false
		ev.cursor.Each(v.Raw, func(element []byte) bool {
			found = JSON(element).Equal(t.value)
			return !found
		})
		return found
	}
	return ev.uncomparable(t)
}

// matched evaluates matches on a text. A long text is searched as far as MaxSubject and the
// budget allow. If that part has no match, the result is unknown and noted.
func (t *test) matched(ev *Evaluator, v Value) bool {
	if v.Kind != String {
		return ev.uncomparable(t)
	}
	cost := t.pattern.instructions
	length := min(len(v.Text), MaxSubject, ev.budget/cost)
	ev.budget -= length * cost
	if length == len(v.Text) {
		return t.pattern.regexp.MatchString(v.Text)
	}
	found := t.pattern.find(v.Text[:length])
	if !found {
		ev.Unsearched = note(ev.Unsearched, t.field.Name)
		ev.Undecided = true
	}
	return found
}

// actionTypes are the action types of AAP section 5.4.
var actionTypes = [...]string{"recommend", "execute", "escalate", "deny"}

// actionType is the name of the field for an action's type.
const actionType = "action_type"

// actionName is the field for an action's name.
var actionName = newField("action_name")

// canMeanNameOnly reports whether t compares action_type with a text that is no type of section
// 5.4. Sections 4.6 and 4.9 write action_type == "delete" and action_type == "purchase": these
// can only mean the name of an action.
func (t *test) canMeanNameOnly() bool {
	if t.field.Name != actionType || t.value.Kind != String {
		return false
	}
	for _, kind := range actionTypes {
		meant := false
		switch t.op {
		case equal, notEqual:
			meant = kind == t.value.Text
		case contains:
			meant = strings.Contains(kind, t.value.Text)
		case matches:
			meant = t.pattern.regexp.MatchString(kind)
		default:
			return false
		}
		if meant {
			return false
		}
	}
	return true
}

// Refutes reports whether a value that a trace claims to have observed for an expression
// differs from the value of its field. It decides only for expressions that name one field, and
// for a value that is comparable with one of the field's values. Another form of a value is the
// same value. A truth value may be the result for a field alone. action_type may mean the
// action's name. For contains and matches, the observed value may be a part.
func (ev *Evaluator) Refutes(e *Expr, observed Value) bool {
	if e.only == nil {
		return false
	}
	ev.values = ev.Source.Values(&e.only.field, ev.values[:0])
	if e.only.field.Name == actionType {
		ev.values = ev.Source.Values(&actionName, ev.values)
	}
	refuted := false
	for _, v := range ev.values {
		_, _, comparable := numbers(v, observed)
		switch {
		case e.only.shows(v, observed):
			return false
		case v.Kind != observed.Kind && !comparable:
		case e.searches:
			// The test distinguishes the two values, and is possible on both.
			ev.Undecided = false
			refuted = refuted || e.tests == 1 && e.only.holdsFor(ev, v) != e.only.holdsFor(ev, observed) && !ev.Undecided
		default:
			refuted = true
		}
	}
	return refuted
}

// shows reports whether an observed value is another form of v.
func (t *test) shows(v, observed Value) bool {
	order, ordered := v.compare(observed)
	switch {
	case v.Equal(observed) || ordered && order == 0:
		return true
	case t.op == truthy && observed.Kind == Bool:
		return observed.Bool == v.truthy()
	}
	return v.Kind == String && observed.Kind == String && strings.EqualFold(strings.TrimSpace(v.Text), strings.TrimSpace(observed.Text))
}
