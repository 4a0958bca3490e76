SELECT tenant, agent_id, trace_id, digest, card_id, session_id, session_end, sequence_number, event_time, received_at,
       retain_until, stream_created, stream_sequence, stream_partition, raw
FROM traces FINAL
PREWHERE tenant = {tenant:String}
  AND (event_hour, agent_id, trace_id, digest) IN (
      SELECT event_hour, agent_id, trace_id, trace_digest
      FROM verdicts
      WHERE tenant = {tenant:String} AND card_id IN {cards:Array(String)}
      GROUP BY event_hour, agent_id, trace_id, trace_digest
      HAVING countIf(status = 'judged') = 0)
ORDER BY stream_sequence
LIMIT {limit:UInt64}
