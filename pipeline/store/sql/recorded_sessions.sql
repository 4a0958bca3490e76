SELECT tenant, agent_id, session_id, version, status, reason, traces, bundles, ended, first_event, last_event, first_sequence, last_sequence, updated_at
FROM sessions FINAL
WHERE tenant = {tenant:String} AND bundles > 0
ORDER BY agent_id, session_id
