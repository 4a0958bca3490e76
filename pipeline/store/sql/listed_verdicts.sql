PREWHERE tenant = {tenant:String}
  AND event_hour IN {hours:Array(UInt32)}
  AND trace_digest IN (SELECT toFixedString(unhex(arrayJoin({digests:Array(String)})), 32))
ORDER BY status = 'judged' DESC, revoked_at DESC, verified_at DESC
LIMIT 1 BY agent_id, trace_id, trace_digest
