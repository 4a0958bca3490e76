SELECT digest, argMax(stream_sequence, received_at) AS sequence
FROM traces
PREWHERE tenant = {tenant:String}
  AND event_hour IN {hours:Array(UInt32)}
  AND digest IN (SELECT toFixedString(unhex(arrayJoin({digests:Array(String)})), 32))
WHERE retain_until > now() + INTERVAL 1 DAY
GROUP BY digest
