-- Where a trace is in the order of its session.
SELECT toUnixTimestamp64Nano(event_time) AS at, digest_hex AS trace_digest
FROM traces
PREWHERE tenant = {tenant:String} AND agent_id = {agent:String} AND session_id = {session:String} AND trace_id = {trace:String}
ORDER BY event_time, digest
LIMIT 1
