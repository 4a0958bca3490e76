SELECT *
FROM (
    SELECT tenant, agent_id, trace_id, digest, card_id, session_id, session_end, sequence_number, event_time, received_at,
           retain_until, stream_created, stream_sequence, stream_partition, raw
    FROM traces FINAL
    PREWHERE tenant = {tenant:String} AND agent_id = {agent:String} AND ({card:String} = '' OR card_id = {card:String})
    ORDER BY received_at, stream_sequence
    LIMIT 1 BY card_id, trace_id)
ORDER BY toUnixTimestamp64Milli(event_time), received_at, stream_sequence
