SELECT digest, min(received_at) AS earliest
FROM traces
WHERE tenant = {tenant:String}
  AND event_hour IN {hours:Array(UInt32)}
  AND agent_id IN {agents:Array(String)}
  AND digest IN (SELECT toFixedString(unhex(arrayJoin({digests:Array(String)})), 32))
GROUP BY digest
