package condition

// Refutes reports whether a value that somebody claims to have observed for an
// expression differs from what its field holds. It says so of expressions that
// name one field alone, and of a value that one of the field's can be compared
// with; a truth value may also be what a field alone amounts to.
func (ev *Evaluator) Refutes(e *Expr, observed Value) bool {
	if e.only == nil {
		return false
	}
	e.only.lookUp(ev)
	refuted := false
	for _, v := range ev.values {
		order, ordered := v.compare(observed)
		if v.Equal(observed) || ordered && order == 0 ||
			e.only.op == truthy && observed.Kind == Bool && observed.Bool == v.truthy() {
			return false
		}
		_, _, comparable := numbers(v, observed)
		refuted = refuted || comparable || v.Kind == observed.Kind
	}
	return refuted
}
