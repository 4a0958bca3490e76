SELECT event_time, agent_id, trace_id, digest
FROM traces FINAL
PREWHERE tenant = {tenant:String}
  AND event_hour BETWEEN {from_hour:UInt32} AND {to_hour:UInt32}
  AND ({agent:String} = '' OR agent_id = {agent:String})
  AND (has({agents:Array(String)}, agent_id) OR arrayExists(prefix -> startsWith(agent_id, prefix), {prefixes:Array(String)}))
  AND ({session:String} = '' OR session_id = {session:String})
  AND ({trace:String} = '' OR trace_id = {trace:String})
WHERE toUnixTimestamp64Nano(event_time) >= {from:Int64} AND toUnixTimestamp64Nano(event_time) < {to:Int64}
  AND (toUnixTimestamp64Nano(event_time) < {after_time:Int64}
       OR toUnixTimestamp64Nano(event_time) = {after_time:Int64}
          AND (agent_id, trace_id, digest) > ({after_agent:String}, {after_trace:String}, toFixedString(unhex({after_digest:String}), 32)))
  AND ({violation:String} = '' %s)
ORDER BY event_time DESC, agent_id, trace_id, digest
LIMIT {limit:UInt64}
