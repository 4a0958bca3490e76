-- A verdict may have been reached for a later copy of its trace. So the rows of verdicts only narrow the search, and the
-- row of the trace decides: it is the copy that arrived first.
WITH {revoked:Array(Int64)}[indexOf({cards:Array(String)}, card_id)] AS revocation
SELECT tenant, agent_id, trace_id, digest, card_id, session_id, session_end, sequence_number, event_time, received_at,
       retain_until, stream_created, stream_sequence, stream_partition, raw
FROM traces FINAL
PREWHERE tenant = {tenant:String}
  AND (event_hour, agent_id, trace_id, digest) IN (
      SELECT event_hour, agent_id, trace_id, trace_digest
      FROM verdicts
      WHERE tenant = {tenant:String} AND status = 'judged' AND card_id IN {cards:Array(String)}
        AND (toUnixTimestamp64Nano(event_time) >= revocation OR toUnixTimestamp64Nano(received_at) > revocation)
      GROUP BY event_hour, agent_id, trace_id, trace_digest
      HAVING max(toUnixTimestamp64Nano(revoked_at)) = 0)
WHERE (toUnixTimestamp64Nano(event_time) >= revocation OR toUnixTimestamp64Nano(received_at) > revocation)
  AND (toUnixTimestamp64Nano(stream_created), stream_sequence) > ({created:Int64}, {sequence:UInt64})
ORDER BY stream_created, stream_sequence
LIMIT {limit:UInt64}
