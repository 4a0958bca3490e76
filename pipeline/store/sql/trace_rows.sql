SELECT tenant, agent_id, trace_id, digest, card_id, session_id, session_end, sequence_number, event_time, received_at,
       retain_until, stream_created, stream_sequence, stream_partition, raw
FROM traces FINAL
