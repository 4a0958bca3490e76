package aap

import (
	"github.com/plumbline/plumbline/aap/condition"
	"github.com/plumbline/plumbline/schema"
)

// Broken returns which conditions of an approval (AAP section 5.6) a trace
// breaks, by index. A field that the trace does not have breaks nothing. A nil
// expression stands for a condition that cannot be evaluated.
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
