SELECT DISTINCT origin_sequence, digest
FROM dead_letters
WHERE tenant = {tenant:String}
  AND event_hour >= {since:UInt32}
  AND origin_sequence IN {sequences:Array(UInt64)}
