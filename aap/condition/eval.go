package condition

import (
	"slices"
	"strings"
)

// Source is where an evaluator finds the values of fields.
type Source interface {
	// Values appends every value that field holds, none where it is absent.
	Values(field *Field, dst []Value) []Value
}

// Quantifier says what several values of one field mean for a test of it.
type Quantifier uint8

// Any is for triggers, All for constraints that must not be broken: each takes
// the reading that hides less.
const (
	Any Quantifier = iota // the test holds when any value makes it hold; absent: it does not
	All                   // the test holds unless a value breaks it; absent: it holds
)

// Evaluator evaluates expressions over one Source and notes what was odd. It
// reuses its memory and is not safe for concurrent use.
type Evaluator struct {
	Source     Source
	Quantifier Quantifier

	Absent       bool     // a field of the last expression has no value
	Ambiguous    []string // fields that hold different values, since Reset
	Uncomparable []string // fields of another type than they are compared with, since Reset

	values []Value
	cursor Cursor
	budget int // bytes that matches may still look at
}

// Reset forgets what was noted: the Source stands for another trace.
func (ev *Evaluator) Reset() {
	ev.Ambiguous, ev.Uncomparable = ev.Ambiguous[:0], ev.Uncomparable[:0]
	ev.budget = matchBudget
}

// Eval tells whether the expression holds.
func (ev *Evaluator) Eval(e *Expr) bool {
	ev.Absent = false
	return e.root.holds(ev)
}

func (o or) holds(ev *Evaluator) bool {
	result := false
	for _, n := range o {
		if n.holds(ev) {
			result = true
		}
	}
	return result
}

func (a and) holds(ev *Evaluator) bool {
	result := true
	for _, n := range a {
		if !n.holds(ev) {
			result = false
		}
	}
	return result
}

func (t *test) holds(ev *Evaluator) bool {
	ev.values = ev.Source.Values(&t.field, ev.values[:0])
	if len(ev.values) == 0 {
		ev.Absent = true
		return ev.Quantifier == All
	}
	some, every := false, true
	for i := range ev.values {
		held := t.holdsFor(ev, ev.values[i])
		some, every = some || held, every && held
	}
	if differ(ev.values) {
		ev.Ambiguous = note(ev.Ambiguous, t.field.Name)
	}
	if ev.Quantifier == All {
		return every
	}
	return some
}

// differ tells whether two of the values are not equal.
func differ(values []Value) bool {
	for _, v := range values[1:] {
		if !v.Equal(values[0]) {
			return true
		}
	}
	return false
}

// note adds a field once, and not without end.
func note(fields []string, name string) []string {
	if len(fields) == maxNotes || slices.Contains(fields, name) {
		return fields
	}
	return append(fields, name)
}

// holdsFor tests one value.
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
		ev.Uncomparable = note(ev.Uncomparable, t.field.Name)
		return false
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

// contained tests contains: a part of a text, or an element of an array.
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
	ev.Uncomparable = note(ev.Uncomparable, t.field.Name)
	return false
}

// matched tests matches on a text. A long one is searched as far as its limit
// and the budget reach; if that finds nothing, nothing is known, and it is
// noted as uncomparable.
func (t *test) matched(ev *Evaluator, v Value) bool {
	if v.Kind != String {
		ev.Uncomparable = note(ev.Uncomparable, t.field.Name)
		return false
	}
	subject := v.Text[:min(len(v.Text), maxSubject, ev.budget)]
	ev.budget -= len(subject)
	found := t.pattern.MatchString(subject)
	if !found && len(subject) < len(v.Text) {
		ev.Uncomparable = note(ev.Uncomparable, t.field.Name)
	}
	return found
}
