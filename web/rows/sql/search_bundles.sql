SELECT agent_id, session_id, part, last_part, lower(hex(sha256)) AS named, path, bytes, trace_count, exported_at
FROM bundles FINAL
WHERE tenant = {tenant:String}
  AND $agents
  AND ({text:String} = '' OR session_id = {text:String} OR has(trace_ids, {text:String}) OR length({text:String}) >= 6 AND startsWith(lower(hex(sha256)), lower({text:String})))
ORDER BY exported_at DESC, sha256
LIMIT {limit:UInt64}
