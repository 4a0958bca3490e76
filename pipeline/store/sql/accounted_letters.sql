SELECT tenant, origin_sequence, digest, SHA256(raw) AS actual, agent_id, trace_id, reason
FROM dead_letters FINAL
WHERE tenant = {tenant:String} AND origin_sequence > 0
ORDER BY origin_sequence
