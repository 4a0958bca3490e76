SELECT baseline_id, mode, formed_at, traces, trace_digests, features.name AS feature_names
FROM drift_baselines FINAL
WHERE tenant = {tenant:String} AND agent_id = {agent:String} AND card_id = {card:String}
ORDER BY received_at DESC, baseline_id
LIMIT 1
