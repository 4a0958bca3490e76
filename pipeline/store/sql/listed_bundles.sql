SELECT tenant, agent_id, session_id, part, sha256, last_part, path, bytes, action_count, trace_count, redactions,
       first_event, last_event, first_sequence, last_sequence, chain_hash, previous_sha256, key_id, reason, exported_at
FROM bundles FINAL
WHERE tenant = {tenant:String}
  AND ({agent:String} = '' OR agent_id = {agent:String})
  AND (has({agents:Array(String)}, agent_id) OR arrayExists(prefix -> startsWith(agent_id, prefix), {prefixes:Array(String)}))
  AND ({session:String} = '' OR session_id = {session:String})
  AND ({sha256:String} = '' OR sha256 = toFixedString(unhex({sha256:String}), 32))
  AND toUnixTimestamp64Nano(exported_at) >= {from:Int64} AND toUnixTimestamp64Nano(exported_at) < {to:Int64}
  AND (toUnixTimestamp64Nano(exported_at) < {after_time:Int64}
       OR toUnixTimestamp64Nano(exported_at) = {after_time:Int64} AND sha256 > toFixedString(unhex({after_sha256:String}), 32))
ORDER BY exported_at DESC, sha256
LIMIT {limit:UInt64}
