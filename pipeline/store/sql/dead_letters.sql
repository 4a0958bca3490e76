SELECT tenant, event_hour, stage, origin_created, origin_sequence, digest, received_at, retain_until, subject,
       agent_id, trace_id, reason, faults.pointer, faults.message, raw
FROM dead_letters FINAL
WHERE tenant = {tenant:String}
ORDER BY received_at, digest
