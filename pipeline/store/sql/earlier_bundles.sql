SELECT DISTINCT part, path, sha256, first_event, last_event
FROM bundles
WHERE tenant = {tenant:String} AND agent_id = {agent:String} AND session_id = {session:String} AND part < {part:UInt32}
  AND last_event >= fromUnixTimestamp64Nano({from:Int64}, 'UTC') AND first_event <= fromUnixTimestamp64Nano({to:Int64}, 'UTC')
  AND (empty({traces:Array(String)}) OR hasAny(trace_ids, {traces:Array(String)}))
ORDER BY part
