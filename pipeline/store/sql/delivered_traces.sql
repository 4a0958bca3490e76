SELECT toUnixTimestamp64Nano(stream_created) AS created, stream_sequence, digest
FROM traces
WHERE tenant = {tenant:String}
  AND event_hour IN {hours:Array(UInt32)}
  AND stream_sequence IN {sequences:Array(UInt64)}
