SELECT tenant, stream_created, stream_sequence, agent_id, session_id, trace_id, trace_digest, received_at
FROM drift_points
PREWHERE tenant = {tenant:String}
ORDER BY stream_created, stream_sequence
