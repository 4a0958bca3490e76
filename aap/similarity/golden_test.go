package similarity

import (
	"testing"

	"github.com/plumbline/plumbline/schema"
)

// The published numbers, each from the structure of its pair: what is declared
// and what was done.
func TestGoldenNumbers(t *testing.T) {
	for _, c := range []struct {
		name  string
		trace *schema.Trace
		card  *schema.Card
		want  float64
	}{
		{"compliant recommendation",
			done(schema.ActionRecommend, schema.CategoryBounded, "recommend", 0.88, escalation(true, false), "principal_benefit", "transparency", "harm_prevention"),
			declaring(schema.Audit{}, triggers(`action_type == "purchase"`),
				[]string{"search", "recommend", "compare", "summarize"}, []string{"purchase", "delete_account", "share_personal_data"}, nil,
				"principal_benefit", "transparency", "harm_prevention"), 0.3642},
		{"approved escalation",
			done(schema.ActionExecute, schema.CategoryEscalation, "purchase", 0.95, escalation(true, true), "principal_benefit", "user_control"),
			declaring(schema.Audit{Queryable: true}, triggers(`action_type == "purchase"`, "amount > 100"),
				[]string{"search", "recommend", "compare", "add_to_cart"}, []string{"auto_purchase", "subscribe_recurring"}, nil,
				"principal_benefit", "transparency", "user_control"), 0.1885},
		{"forbidden action",
			done(schema.ActionExecute, schema.CategoryForbidden, "delete_data", 0.6, escalation(false, false), "principal_benefit"),
			declaring(schema.Audit{}, triggers("shares_personal_data"),
				[]string{"search", "summarize", "export"}, []string{"delete_data", "modify_permissions", "share_externally"}, nil,
				"principal_benefit", "privacy", "harm_prevention"), 0.121},
		{"missed escalation",
			done(schema.ActionExecute, schema.CategoryEscalation, "purchase", 0.7, escalation(true, false), "principal_benefit"),
			declaring(schema.Audit{Queryable: true}, triggers(`action_type == "purchase"`, "amount > 50"),
				[]string{"search", "recommend", "compare", "add_to_cart"}, nil, nil,
				"principal_benefit", "user_control", "transparency"), 0.1133},
		{"undeclared value",
			done(schema.ActionRecommend, schema.CategoryBounded, "recommend", 0.85, escalation(true, false), "profit_maximization", "vendor_benefit"),
			declaring(schema.Audit{}, nil, []string{"search", "recommend", "compare"}, nil, []string{"profit_maximization", "vendor_benefit"},
				"principal_benefit", "transparency", "fairness"), 0.1138},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := NewCard(c.card).Score(c.trace); got != c.want {
				t.Errorf("%v, want the published %v", got, c.want)
			}
			if got := Round4(Cosine(TraceFeatures(c.trace, nil), CardFeatures(c.card))); got != c.want {
				t.Errorf("the cosine of the vectors is %v, want %v", got, c.want)
			}
		})
	}
}

func done(kind schema.ActionType, category schema.Category, name string, confidence float64, e schema.Escalation, values ...string) *schema.Trace {
	return &schema.Trace{
		Action:     schema.Action{Type: kind, Category: category, Name: name},
		Decision:   schema.Decision{ValuesApplied: values, Confidence: confidence, HasConfidence: true},
		Escalation: e,
	}
}

func escalation(evaluated, required bool) schema.Escalation {
	return schema.Escalation{Present: true, Evaluated: evaluated, Required: required}
}

func triggers(conditions ...string) (list []schema.Trigger) {
	for _, condition := range conditions {
		list = append(list, schema.Trigger{Condition: condition, Action: schema.TriggerEscalate})
	}
	return list
}

func declaring(audit schema.Audit, escalations []schema.Trigger, bounded, forbidden, conflicts []string, values ...string) *schema.Card {
	return &schema.Card{
		Principal: schema.Principal{Type: "human", Relationship: "delegated_authority"},
		Values:    schema.Values{Declared: values, ConflictsWith: conflicts},
		Autonomy:  schema.Autonomy{BoundedActions: bounded, ForbiddenActions: forbidden, EscalationTriggers: escalations},
		Audit:     audit,
	}
}
