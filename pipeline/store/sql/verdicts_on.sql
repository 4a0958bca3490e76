PREWHERE tenant = {tenant:String}
  AND event_hour IN {hours:Array(UInt32)}
  AND agent_id IN {agents:Array(String)}
  AND trace_digest IN (SELECT toFixedString(unhex(arrayJoin({digests:Array(String)})), 32))
