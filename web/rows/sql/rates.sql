SELECT toStartOfMinute(received_at) AS at, count() AS traces
FROM traces
PREWHERE received_at >= toDateTime64({since:Int64}, 9, 'UTC')
WHERE tenant = {tenant:String}
  AND ({every:UInt8} OR has({agents:Array(String)}, agent_id) OR arrayExists(prefix -> startsWith(agent_id, prefix), {prefixes:Array(String)}))
GROUP BY at
ORDER BY at
LIMIT 1500
