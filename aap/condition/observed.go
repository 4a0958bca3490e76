package condition

import "strings"

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
			refuted = refuted || e.tests == 1 && ev.tellsApart(e.only, v, observed)
		default:
			refuted = true
		}
	}
	return refuted
}

// tellsApart reports whether a test has different results for two values. If the test is
// impossible on one of them, it reports false.
func (ev *Evaluator) tellsApart(t *test, v, w Value) bool {
	ev.Undecided = false
	return t.holdsFor(ev, v) != t.holdsFor(ev, w) && !ev.Undecided
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
