package aap_test

import (
	"fmt"
	"log"
	"time"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/schema"
)

func ExampleRegister() {
	card, err := aap.Register([]byte(`{"aap_version": "0.1.0", "card_id": "ac-1", "agent_id": "did:web:shop.example",
		"issued_at": "2026-01-01T00:00:00Z", "expires_at": "2027-01-01T00:00:00Z",
		"principal": {"type": "organization", "identifier": "shop.example", "relationship": "delegated_authority"},
		"values": {"declared": ["honesty"]},
		"autonomy_envelope": {"bounded_actions": ["search", "compare"], "escalation_triggers": [
			{"condition": "action_category == \"purchase\"", "action": "escalate", "reason": "it costs money"}]},
		"audit_commitment": {"trace_format": "ap-trace-v1", "retention_days": 90, "queryable": false}}`))
	if err != nil {
		log.Fatal(err) // a *schema.Refusal with every fault
	}
	for _, hint := range aap.Lint(card) {
		fmt.Println(hint.Type, hint.Pointer)
	}

	// Output:
	// unsigned_card /signature
	// trigger_never_fires /autonomy_envelope/escalation_triggers/0/condition
}

func ExampleJudge_Verify() {
	card, err := schema.DecodeCard([]byte(`{"aap_version": "0.1.0", "card_id": "ac-1", "agent_id": "did:web:shop.example",
		"issued_at": "2026-01-01T00:00:00Z", "principal": {"type": "human", "relationship": "delegated_authority"},
		"values": {"declared": ["honesty"]},
		"autonomy_envelope": {"bounded_actions": ["search"], "escalation_triggers": [
			{"condition": "amount > 100", "action": "escalate", "reason": "expensive"}]},
		"audit_commitment": {"trace_format": "ap-trace-v1", "retention_days": 90, "queryable": false}}`))
	if err != nil {
		log.Fatal(err)
	}
	trace, err := schema.Admit("", []byte(`{"trace_id": "tr-1", "agent_id": "did:web:shop.example", "card_id": "ac-1",
		"timestamp": "2026-03-14T15:30:00Z",
		"action": {"type": "execute", "name": "buy", "category": "bounded", "parameters": {"amount": 250}},
		"decision": {"alternatives_considered": [{"option_id": "A", "description": "buy now"}], "selected": "A",
			"selection_reasoning": "the price is low", "values_applied": ["honesty"]}}`))
	if err != nil {
		log.Fatal(err)
	}
	judge, err := aap.NewJudge(aap.DefaultThresholds())
	if err != nil {
		log.Fatal(err)
	}
	var verdict schema.Verdict
	judge.Verify(trace, aap.Compile(card), aap.Facts{}, time.Now(), &verdict)
	fmt.Println(verdict.RecommendedAction)
	for _, violation := range verdict.Violations {
		fmt.Println(violation.Severity, violation.Type, violation.Field)
	}

	// Output:
	// deny
	// HIGH UNBOUNDED_ACTION action.name
	// HIGH MISSED_ESCALATION escalation.required
}
