SELECT tenant, agent_id, session_id, version, status, reason, traces, bundles, ended, first_event, last_event, first_sequence, last_sequence, updated_at
FROM sessions FINAL
WHERE tenant = {tenant:String} AND status = 'held'
  AND ({agent:String} = '' OR agent_id = {agent:String})
  AND last_event >= fromUnixTimestamp64Nano({from:Int64}, 'UTC') AND first_event < fromUnixTimestamp64Nano({to:Int64}, 'UTC')
ORDER BY agent_id, session_id
