SELECT toUnixTimestamp64Nano(stream_created), stream_sequence, digest, toFixedString('', 32), '', '', toInt64(0)
FROM traces
WHERE tenant = {tenant:String}
  AND event_hour IN {hours:Array(UInt32)}
  AND stream_sequence IN {sequences:Array(UInt64)}
