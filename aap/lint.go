package aap

import (
	"fmt"

	"github.com/plumbline/plumbline/aap/condition"
	"github.com/plumbline/plumbline/schema"
)

// Lint is schema.Lint with additional hints on conditions: triggers that no trace can match,
// because they demand values of the action block that AAP section 5.4 does not allow, such as
// action_category == "purchase".
func Lint(c *Compiled) []schema.Hint {
	hints := schema.Lint(c.Card)
	for i := range c.triggers {
		if expr := c.triggers[i].expr; expr != nil && neverHolds(expr) {
			hints = append(hints, schema.Hint{
				Type:    schema.LintTriggerNever,
				Pointer: c.conditionPointer(i),
				Description: fmt.Sprintf("no trace can match `%s`: an action has one type, recommend, execute, escalate or deny, and one category, "+
					"bounded, escalation_trigger or forbidden; ask action_name for its name", expr),
			})
		}
	}
	return hints
}

// neverHolds reports whether a condition uses only the type and category of an action and is
// false for all of their combinations.
func neverHolds(expr *condition.Expr) bool {
	var block actionBlock
	evaluator := condition.Evaluator{Source: &block}
	for _, block.kind = range []schema.ActionType{schema.ActionRecommend, schema.ActionExecute, schema.ActionEscalate, schema.ActionDeny} {
		for _, block.category = range []schema.Category{schema.CategoryBounded, schema.CategoryEscalation, schema.CategoryForbidden} {
			evaluator.Reset()
			if evaluator.Eval(expr) || block.asked {
				return false
			}
		}
	}
	return true
}

// actionBlock is a condition.Source with an action's type and category only.
type actionBlock struct {
	kind     schema.ActionType
	category schema.Category
	asked    bool // whether anything else was looked up
}

// Values implements condition.Source.
func (b *actionBlock) Values(field *condition.Field, dst []condition.Value) []condition.Value {
	switch field.Name {
	case "action_type":
		return append(dst, condition.Text(string(b.kind)))
	case "action_category":
		return append(dst, condition.Text(string(b.category)))
	}
	b.asked = true
	return dst
}
