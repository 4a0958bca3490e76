SELECT tenant, event_hour, agent_id, alert_id, alert_type, card_id, session_id, detection_timestamp, received_at, retain_until,
       stream_created, stream_sequence, type, severity, description, trace_id, trace_field, trace_digest, engine_version
FROM loop_alerts FINAL
WHERE tenant = {tenant:String}
