SELECT toUnixTimestamp64Nano(stream_created) AS created, stream_sequence, trace_digest AS digest, card_digest,
       engine_version, profile, toUnixTimestamp64Nano(revoked_at) AS revoked
FROM verdicts
WHERE tenant = {tenant:String}
  AND event_hour IN {hours:Array(UInt32)}
  AND stream_sequence IN {sequences:Array(UInt64)}
