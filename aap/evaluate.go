package aap

import (
	"slices"

	"github.com/plumbline/plumbline/aap/condition"
	"github.com/plumbline/plumbline/schema"
)

// Evaluation is the outcome of one condition on one trace (AAP section 4.6).
type Evaluation struct {
	Matched      bool     `json:"matched"`
	Absent       bool     `json:"absent"`                 // a field is absent from the whole trace
	Ambiguous    []string `json:"ambiguous,omitempty"`    // fields that hold different values in different places
	Uncomparable []string `json:"uncomparable,omitempty"` // fields whose type does not fit the comparison
	Unsearched   []string `json:"unsearched,omitempty"`   // fields that patterns searched in part, without a result
}

// Evaluate evaluates a condition on a trace as Verify evaluates a trigger of a card.
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
