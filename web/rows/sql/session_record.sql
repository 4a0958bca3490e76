SELECT status, reason, updated_at
FROM sessions FINAL
WHERE tenant = {tenant:String} AND agent_id = {agent:String} AND session_id = {session:String}
