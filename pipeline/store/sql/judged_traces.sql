SELECT tenant, stream_created, stream_sequence, agent_id, session_id, trace_id,
       trace_digest, card_digest, engine_version, profile, revoked_at, verdict_id
FROM verdicts
PREWHERE tenant = {tenant:String}
ORDER BY stream_created, stream_sequence
