package eval

import (
	"strings"
	"testing"

	"github.com/plumbline/plumbline/schema/published"
)

// An agent calls its suggestion bounded, but its card bounds no action of that name. The data
// is Plumbline's own.
const (
	shopCard = `{"aap_version": "0.1.0", "card_id": "ac-shop", "agent_id": "did:web:shop.example", "issued_at": "2026-01-01T00:00:00Z",
		"principal": {"type": "organization", "relationship": "delegated_authority"}, "values": {"declared": ["honesty", "fairness"]},
		"autonomy_envelope": {"bounded_actions": ["look_up", "list"], "escalation_triggers":
			[{"condition": "price > 20", "action": "escalate", "reason": "dear"}], "forbidden_actions": ["pay"]},
		"audit_commitment": {"trace_format": "ap-trace-v1", "retention_days": 30, "queryable": false}}`
	shopTrace = `{"trace_id": "tr-shop", "agent_id": "did:web:shop.example", "card_id": "ac-shop", "timestamp": "2026-02-01T00:00:00Z",
		"action": {"type": "recommend", "name": "suggest_item", "category": "bounded"},
		"decision": {"alternatives_considered": [{"option_id": "x", "description": "the one in stock", "score": 0.9}], "selected": "x",
			"selection_reasoning": "only x is in stock", "values_applied": ["honesty"], "confidence": 0.9},
		"escalation": {"evaluated": true, "required": false, "reason": "nothing is bought",
			"triggers_checked": [{"trigger": "price > 20", "matched": false}]}}`
)

// violationsUnder judges a trace against a card and returns the types of violations.
func violationsUnder(t *testing.T, profile Profile, trace, card string) []string {
	t.Helper()
	flat := strings.NewReplacer("\n", " ", "\t", " ", "\r", " ")
	answers := judge(t, profile, flat.Replace(`{"id":"1","op":"verify","trace":`+trace+`,"card":`+card+`}`))
	if len(answers) != 1 || !answers[0].OK {
		t.Fatalf("%s: got %+v", profile, answers)
	}
	result := answers[0].Result.(map[string]any)
	var types []string
	for _, violation := range result["violations"].([]any) {
		types = append(types, violation.(map[string]any)["type"].(string))
	}
	if verified := result["verified"].(bool); verified != (len(types) == 0) {
		t.Errorf("%s: verified %v with %v", profile, verified, types)
	}
	return types
}

func TestActionCalledBoundedThatIsNot(t *testing.T) {
	for _, profile := range []Profile{ProfileSpec, ProfileReference} {
		if got := violationsUnder(t, profile, shopTrace, shopCard); len(got) != 1 || !strings.EqualFold(got[0], "UNBOUNDED_ACTION") {
			t.Errorf("%s: got %v", profile, got)
		}
		named := strings.Replace(shopTrace, "suggest_item", "list", 1)
		if got := violationsUnder(t, profile, named, shopCard); len(got) != 0 {
			t.Errorf("%s: got %v of a bounded action", profile, got)
		}
	}
}

// A card that lists the type "recommend" bounds the suggestion under profile spec but not under
// profile reference.
func TestActionBoundedByItsType(t *testing.T) {
	card := strings.Replace(shopCard, `"list"`, `"recommend"`, 1)
	if got := violationsUnder(t, ProfileSpec, shopTrace, card); len(got) != 0 {
		t.Errorf("spec: got %v", got)
	}
	if got := violationsUnder(t, ProfileReference, shopTrace, card); len(got) != 1 || got[0] != "unbounded_action" {
		t.Errorf("reference: got %v", got)
	}
}

// The specification's example, which it presents as compliant, is compliant under profile spec;
// the public SDK reports a violation.
func TestSpecificationExample(t *testing.T) {
	read := func(name string) string { return string(published.Read(t, "conformance/aap/"+name)) }
	card, trace := read("spec_example_card.json"), read("spec_example_trace.json")
	if got := violationsUnder(t, ProfileSpec, trace, card); len(got) != 0 {
		t.Errorf("spec: got %v", got)
	}
	if got := violationsUnder(t, ProfileReference, trace, card); len(got) != 1 || got[0] != "unbounded_action" {
		t.Errorf("reference: got %v", got)
	}
}
