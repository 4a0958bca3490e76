SELECT tenant, agent_id, trace_id, digests, first_received, last_received
FROM conflicts
WHERE tenant = {tenant:String}
ORDER BY agent_id, trace_id
