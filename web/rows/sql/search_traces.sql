SELECT agent_id, trace_id, session_id, event_time, received_at, toString(action_type) AS action_type, leftUTF8(toString(action_name), 200) AS action_name, lower(hex(digest)) AS digest
FROM traces FINAL
PREWHERE tenant = {tenant:String} AND trace_id = {text:String}
WHERE $agents
ORDER BY event_time DESC, agent_id, digest
LIMIT {limit:UInt64}
