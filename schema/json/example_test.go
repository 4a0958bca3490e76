package jsonschema_test

// Records with every member that the specification and Plumbline name.
const (
	fullTrace = `{
		"trace_id": "tr-1", "agent_id": "a", "card_id": "ac-1", "timestamp": "2026-01-31T12:30:00.25+01:00",
		"action": {"type": "execute", "name": "search", "category": "bounded",
			"target": {"type": "product", "identifier": "p-1"}, "parameters": {"amount": 45.5, "list": [1, {"x": null}]}},
		"decision": {"alternatives_considered": [
				{"option_id": "A", "description": "first", "score": 0.85, "scoring_factors": {"principal_benefit": 0.9}, "flags": ["new"]},
				{"option_id": "B", "description": "", "score": 0, "flags": []}, {"option_id": "C", "description": "third", "score": 1}],
			"selected": "A", "selection_reasoning": "it is the best", "values_applied": ["honesty"], "confidence": 0.5},
		"escalation": {"evaluated": true, "triggers_checked": [{"trigger": "amount > 50", "matched": false, "value_observed": 45.5}],
			"required": true, "reason": "asked", "escalation_id": "e-1", "escalation_status": "approved",
			"principal_response": {"decision": "approved", "timestamp": "2026-01-31T12:31:00Z", "conditions": ["amount <= 50"]}},
		"context": {"session_id": "s-1", "conversation_turn": 3, "prior_trace_ids": ["tr-0"], "environment": {"locale": "de"},
			"metadata": {"session_end": true, "sequence_number": 7, "own": {"x": 1},
				"execution": {"tool_name": "shop", "inputs": {"q": 1}, "outputs": [1], "cost_cents": 12, "error": "none"}}},
		"signature": "whatever", "own": [true]
	}`

	fullCard = `{
		"aap_version": "0.1.0", "card_id": "ac-1", "agent_id": "a", "issued_at": "2026-01-01T00:00:00Z", "expires_at": "2026-12-31T00:00:00Z",
		"principal": {"type": "human", "identifier": "u", "relationship": "advisory", "escalation_contact": "mailto:u@example.com"},
		"values": {"declared": ["honesty", "thrift"], "conflicts_with": ["waste"], "hierarchy": "weighted",
			"definitions": {"thrift": {"name": "Thrift", "description": "spend little", "priority": 2.5, "subsumes": ["saving"]}}},
		"autonomy_envelope": {"bounded_actions": ["search"], "forbidden_actions": ["delete"],
			"escalation_triggers": [{"condition": "amount > 5", "action": "deny", "reason": "too much"}],
			"max_autonomous_value": {"amount": 99.5, "currency": "EUR"}},
		"audit_commitment": {"trace_format": "ap-trace-v1", "retention_days": 90, "queryable": true, "query_endpoint": "https://a.example/t",
			"storage": {"type": "remote", "location": "s3"}, "tamper_evidence": "signed"},
		"extensions": {"a2a": {"agent_card_url": "https://a.example/agent.json"},
			"plumbline": {"keys": [{"key_id": "k", "algorithm": "Ed25519", "public_key": "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="}]}},
		"signature": {"algorithm": "Ed25519", "key_id": "k",
			"value": "5VZDAMNgrHKQhuLMgG6CioSHfx645dl02HPgZSJJAVVfuIIVkKM7rMYeOXAc+bRr0lv18FlbviRlUUFDjnoQCw=="},
		"own": 1
	}`

	unifiedCard = `{
		"card_version": "unified/2026-04-26", "card_id": "ac-2", "agent_id": "b", "issued_at": "2026-01-01T00:00:00Z",
		"autonomy_mode": "observe", "integrity_mode": "enforce",
		"principal": {"type": "organization", "identifier": "org", "relationship": "autonomous"}, "values": {"declared": ["honesty"]},
		"autonomy": {"bounded_actions": ["search"], "escalation_triggers": [], "max_autonomous_value": {"amount": 1}},
		"audit": {"retention_days": 30, "queryable": false}
	}`

	cardRequest = `{
		"message_type": "alignment_card_request", "request_id": "r-1", "timestamp": "2026-01-31T12:00:00Z",
		"requester": {"agent_id": "a", "card_id": "ac-1"},
		"task_context": {"task_type": "compare", "values_required": ["honesty"], "data_categories": ["prices"]},
		"signature": {"algorithm": "Ed25519", "key_id": "k",
			"value": "5VZDAMNgrHKQhuLMgG6CioSHfx645dl02HPgZSJJAVVfuIIVkKM7rMYeOXAc+bRr0lv18FlbviRlUUFDjnoQCw=="}, "own": {}
	}`

	cardResponse = `{
		"message_type": "alignment_card_response", "request_id": "r-1", "timestamp": "2026-01-31T12:00:01Z",
		"signed_by": "service", "alignment_card": ` + fullCard + `
	}`

	coherenceCheck = `{
		"message_type": "value_coherence_check", "request_id": "r-1", "timestamp": "2026-01-31T12:00:02Z",
		"initiator_card_id": "ac-1", "responder_card_id": "ac-2",
		"proposed_collaboration": {"task_type": "compare", "values_intersection": ["honesty"],
			"data_sharing": {"from_initiator": ["criteria"], "from_responder": ["prices"]},
			"autonomy_scope": {"initiator_actions": ["search"], "responder_actions": ["answer"]},
			"modified_values": {"initiator_concession": "thrift", "responder_concession": ["speed", "depth"]}}
	}`

	coherenceResult = `{
		"message_type": "coherence_result", "request_id": "r-1", "timestamp": "2026-01-31T12:00:03Z", "proceed": false, "signed_by": "service",
		"coherence": {"compatible": false, "score": 0.45, "value_alignment": {"matched": ["honesty"], "unmatched": ["thrift"],
			"conflicts": [{"initiator_value": "thrift", "responder_value": "(conflicts_with)", "conflict_type": "incompatible",
				"description": "refused", "refused_by": "responder", "resolved_by": "modified_scope"}]}},
		"conditions": ["no analytics"],
		"proposed_resolution": {"type": "escalate_to_principals", "reason": "a human decides",
			"alternative": {"type": "modified_scope", "description": "without", "modified_values": {"responder_concession": "speed"},
				"autonomy_scope": {"initiator_actions": []}, "data_sharing": {"from_responder": ["prices"]}},
			"escalation_contacts": [{"side": "initiator", "agent_id": "a", "escalation_contact": "mailto:u@example.com"}]},
		"reasons": [{"code": "value_conflict", "side": "responder", "agent_id": "b", "card_id": "ac-2", "description": "a conflict"}],
		"resolution_steps": [{"step": "automatic", "subject": "thrift", "side": "initiator", "outcome": "failed", "reason": "none subsumes it"}],
		"coherence_metadata": {"engine_version": "1", "profile": "spec", "min_coherence": 0.7, "methodology": "m", "required_from": "union",
			"initiator_card_digest": "00000000000000000000000000000000000000000000000000000000000000ff",
			"responder_card_digest": "", "assessed_at": "2026-01-31T12:00:03Z"}
	}`

	taskResult = `{
		"message_type": "task_result", "request_id": "r-1", "timestamp": "2026-01-31T12:05:00Z",
		"responder": {"agent_id": "b", "card_id": "ac-2"}, "status": "completed", "result": {"cheapest": [3, null, "x"]},
		"trace_reference": {"trace_ids": ["tr-1", "tr-2"], "session_id": "s-1"}}`
)
