package aap

import (
	"slices"

	"github.com/plumbline/plumbline/aap/condition"
	"github.com/plumbline/plumbline/schema"
)

// Evaluation is the outcome of one condition on one trace (AAP section 4.6).
type Evaluation struct {
	Matched      bool     `json:"matched"`
	Absent       bool     `json:"absent"`                 // a field is nowhere in the trace
	Ambiguous    []string `json:"ambiguous,omitempty"`    // fields that hold different values in different places
	Uncomparable []string `json:"uncomparable,omitempty"` // fields of another type than they are compared with
	Unsearched   []string `json:"unsearched,omitempty"`   // fields of which patterns saw a part that does not tell
}

// Evaluate tells whether a condition holds for a trace, as a trigger of its card would.
func Evaluate(expr *condition.Expr, t *schema.Trace) Evaluation {
	var lookup fields
	lookup.reset(t)
	evaluator := condition.Evaluator{Source: &lookup}
	evaluator.Reset()
	matched := evaluator.Eval(expr)
	return Evaluation{
		Matched:      matched,
		Absent:       evaluator.Absent,
		Ambiguous:    slices.Clone(evaluator.Ambiguous),
		Uncomparable: slices.Clone(evaluator.Uncomparable),
		Unsearched:   slices.Clone(evaluator.Unsearched),
	}
}
