SELECT tenant, stream_created, stream_partition, agent_id, card_id, version, applied, applied_above, last_event_time, state
FROM drift_state FINAL
PREWHERE tenant = {tenant:String}
  AND stream_created = fromUnixTimestamp64Nano({created:Int64}, 'UTC')
  AND (stream_partition, agent_id) IN (
      SELECT pair.1, pair.2 FROM (SELECT arrayJoin(arrayZip({partitions:Array(UInt16)}, {agents:Array(String)})) AS pair))
ORDER BY greatest(applied, arrayMax(applied_above)) DESC, card_id
LIMIT {most:UInt32} BY stream_partition, agent_id
SETTINGS select_sequential_consistency = 1
