package reference

import (
	"encoding/json"
	"math"
	"testing"
)

// The published numbers, each computed from the structure of its pair: declarations and
// behaviour.
func TestGoldenNumbers(t *testing.T) {
	type list []string
	for _, c := range []struct {
		name                                    string
		action, category, actionName            string
		confidence                              float64
		evaluated, required                     bool
		applied                                 list
		declared, bounded, forbidden, conflicts list
		conditions                              list
		queryable                               bool
		want                                    float64
	}{
		{"compliant recommendation", "recommend", "bounded", "recommend", 0.88, true, false, list{"principal_benefit", "transparency", "harm_prevention"},
			list{"principal_benefit", "transparency", "harm_prevention"}, list{"search", "recommend", "compare", "summarize"},
			list{"purchase", "delete_account", "share_personal_data"}, nil, list{`action_type == "purchase"`}, false, 0.3642},
		{"approved escalation", "execute", "escalation_trigger", "purchase", 0.95, true, true, list{"principal_benefit", "user_control"},
			list{"principal_benefit", "transparency", "user_control"}, list{"search", "recommend", "compare", "add_to_cart"},
			list{"auto_purchase", "subscribe_recurring"}, nil, list{`action_type == "purchase"`, "amount > 100"}, true, 0.1885},
		{"forbidden action", "execute", "forbidden", "delete_data", 0.6, false, false, list{"principal_benefit"},
			list{"principal_benefit", "privacy", "harm_prevention"}, list{"search", "summarize", "export"},
			list{"delete_data", "modify_permissions", "share_externally"}, nil, list{"shares_personal_data"}, false, 0.121},
		{"missed escalation", "execute", "escalation_trigger", "purchase", 0.7, true, false, list{"principal_benefit"},
			list{"principal_benefit", "user_control", "transparency"}, list{"search", "recommend", "compare", "add_to_cart"},
			nil, nil, list{`action_type == "purchase"`, "amount > 50"}, true, 0.1133},
		{"undeclared value", "recommend", "bounded", "recommend", 0.85, true, false, list{"profit_maximization", "vendor_benefit"},
			list{"principal_benefit", "transparency", "fairness"}, list{"search", "recommend", "compare"},
			nil, list{"profit_maximization", "vendor_benefit"}, nil, false, 0.1138},
	} {
		type object map[string]any
		triggers := []object{}
		for _, condition := range c.conditions {
			triggers = append(triggers, object{"condition": condition, "action": "escalate"})
		}
		trace := loose(t, object{
			"action":     object{"type": c.action, "category": c.category, "name": c.actionName},
			"decision":   object{"values_applied": c.applied, "confidence": c.confidence},
			"escalation": object{"evaluated": c.evaluated, "required": c.required},
		})
		card := loose(t, object{
			"principal": object{"type": "human", "relationship": "delegated_authority"},
			"values":    object{"declared": c.declared, "conflicts_with": c.conflicts},
			"autonomy":  object{"bounded_actions": c.bounded, "forbidden_actions": c.forbidden, "escalation_triggers": triggers},
			"audit":     object{"queryable": c.queryable},
		})
		got, err := Similarity(trace, card)
		if err != nil || math.Round(got*1e4)/1e4 != c.want {
			t.Errorf("%s: %v (%v), want the published %v", c.name, got, err, c.want)
		}
	}
}

// loose returns a value as the generic tree into which a request is read.
func loose(t *testing.T, v any) any {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}
