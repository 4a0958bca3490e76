-- The table is small next to the traces: it has one row for each sealed part.
SELECT agent_id, session_id, part, sha256_hex AS bundle_sha256, path, bytes, previous_sha256
FROM bundles FINAL
WHERE tenant = {tenant:String} AND sha256 = toFixedString(unhex({sha256:String}), 32)
  AND $agents
LIMIT 1
