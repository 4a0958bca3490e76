SELECT tenant, stream_created, stream_sequence, trace_digest
FROM verdicts
PREWHERE tenant = {tenant:String}
ORDER BY stream_created, stream_sequence
