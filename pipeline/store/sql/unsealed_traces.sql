SELECT tenant, agent_id, session_id, count() AS traces, min(event_time) AS first_event, max(event_time) AS last_event
FROM traces FINAL
PREWHERE tenant = {tenant:String} AND ({agent:String} = '' OR agent_id = {agent:String})
WHERE event_hour >= {from_hour:UInt32} AND event_hour <= {to_hour:UInt32}
  AND event_time >= fromUnixTimestamp64Nano({from:Int64}, 'UTC') AND event_time < fromUnixTimestamp64Nano({to:Int64}, 'UTC')
  AND (agent_id, session_id, trace_id) GLOBAL NOT IN (
      SELECT agent_id, session_id, arrayJoin(trace_ids)
      FROM bundles FINAL
      WHERE tenant = {tenant:String} AND ({agent:String} = '' OR agent_id = {agent:String}))
GROUP BY tenant, agent_id, session_id
ORDER BY agent_id, session_id
