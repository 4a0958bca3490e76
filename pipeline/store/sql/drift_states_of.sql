SELECT tenant, stream_created, stream_partition, agent_id, card_id, version, applied, applied_above, last_event_time, state
FROM drift_state FINAL
PREWHERE tenant = {tenant:String}
  AND stream_created = fromUnixTimestamp64Nano({created:Int64}, 'UTC')
  AND stream_partition = {partition:UInt16}
  AND agent_id IN {agents:Array(String)}
ORDER BY greatest(applied, arrayMax(applied_above)) DESC, card_id
LIMIT {most:UInt32} BY agent_id
SETTINGS select_sequential_consistency = 1
