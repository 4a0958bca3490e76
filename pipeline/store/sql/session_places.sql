SELECT tenant, agent_id, session_id, stream_created, stream_sequence, trace_id, received_at, retain_until
FROM traces FINAL
PREWHERE tenant = {tenant:String}
ORDER BY agent_id, session_id, stream_created, stream_sequence
