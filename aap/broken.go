package aap

import (
	"github.com/plumbline/plumbline/aap/condition"
	"github.com/plumbline/plumbline/schema"
)

// Broken returns the indexes of the conditions of an approval (AAP section 5.6) that a trace
// breaks. A field that the trace lacks breaks no condition. A nil expression means that the
// condition cannot be evaluated.
func Broken(conditions []*condition.Expr, t *schema.Trace) (broken []int) {
	var lookup fields
	lookup.reset(t)
	evaluator := condition.Evaluator{Source: &lookup, Quantifier: condition.All}
	evaluator.Reset()
	for i, expr := range conditions {
		if expr != nil && !evaluator.Eval(expr) {
			broken = append(broken, i)
		}
	}
	return broken
}
