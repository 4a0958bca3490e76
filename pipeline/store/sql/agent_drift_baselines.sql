SELECT tenant, agent_id, card_id, baseline_id, mode, engine_version, formed_at, received_at, traces,
       trace_ids, trace_digests, features.name, features.weight, escalation_rate, texts, session_ids
FROM drift_baselines FINAL
WHERE tenant = {tenant:String} AND agent_id = {agent:String} AND card_id = {card:String}
ORDER BY received_at, baseline_id
