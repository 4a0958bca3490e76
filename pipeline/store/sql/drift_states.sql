SELECT tenant, stream_created, stream_partition, agent_id, card_id, version, applied, applied_above, last_event_time, state
FROM drift_state FINAL
PREWHERE tenant = {tenant:String}
  AND stream_created = fromUnixTimestamp64Nano({created:Int64}, 'UTC')
  AND (stream_partition, agent_id, card_id) IN (
      SELECT series.1, series.2, series.3
      FROM (SELECT arrayJoin(arrayZip({partitions:Array(UInt16)}, {agents:Array(String)}, {cards:Array(String)})) AS series))
SETTINGS select_sequential_consistency = 1
