SELECT tenant, stream_created, stream_partition, agent_id, card_id, version, applied, applied_above, last_event_time, state
FROM drift_state FINAL
WHERE tenant = {tenant:String}
  AND stream_created = fromUnixTimestamp64Nano({created:Int64}, 'UTC')
  AND stream_partition = {partition:UInt16}
ORDER BY agent_id, card_id
SETTINGS select_sequential_consistency = 1
