SELECT tenant, event_hour, agent_id, card_id, trace_id, trace_digest, engine_version, event_time, received_at,
       retain_until, stream_created, stream_sequence, session_id, status, similarity, threshold, streak,
       methodology, mode, baseline_id
FROM drift_points FINAL
PREWHERE tenant = {tenant:String}
  AND event_hour IN {hours:Array(UInt32)}
  AND trace_digest IN (SELECT toFixedString(unhex(arrayJoin({digests:Array(String)})), 32))
