SELECT DISTINCT tenant, trace_digest, verdict_id
FROM verdicts
WHERE tenant = {tenant:String}
  AND event_hour IN {hours:Array(UInt32)}
  AND trace_digest IN (SELECT toFixedString(unhex(arrayJoin({digests:Array(String)})), 32))
