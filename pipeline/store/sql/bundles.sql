SELECT tenant, agent_id, session_id, part, sha256, last_part, path, bytes, action_count, trace_count, redactions,
       first_event, last_event, first_sequence, last_sequence, trace_ids, chain_hash, previous_sha256,
       key_id, reason, exported_at
FROM bundles FINAL
WHERE tenant = {tenant:String}
  AND ({agent:String} = '' OR agent_id = {agent:String})
  AND ({session:String} = '' OR session_id = {session:String})
  AND ({trace:String} = '' OR has(trace_ids, {trace:String}))
ORDER BY agent_id, session_id, part
