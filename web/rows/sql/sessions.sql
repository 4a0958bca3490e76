SELECT agent_id, session_id, min(event_time) AS begin, max(event_time) AS end
FROM traces
PREWHERE tenant = {tenant:String} AND event_hour BETWEEN {from_hour:UInt32} AND {to_hour:UInt32} AND ({agent:String} = '' OR agent_id = {agent:String})
WHERE $agents
  AND startsWith(session_id, {text:String})
GROUP BY agent_id, session_id
ORDER BY end DESC, agent_id, session_id
LIMIT {limit:UInt64}
