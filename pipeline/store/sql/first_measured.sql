SELECT trace_digest AS digest, min(stream_sequence) AS first
FROM drift_points
PREWHERE tenant = {tenant:String}
  AND event_hour IN {hours:Array(UInt32)}
  AND trace_digest IN (SELECT toFixedString(unhex(arrayJoin({digests:Array(String)})), 32))
WHERE stream_created = fromUnixTimestamp64Nano({created:Int64}, 'UTC')
GROUP BY trace_digest
