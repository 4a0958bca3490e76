SELECT tenant, stream_created, stream_partition, agent_id, card_id, version, applied, applied_above, last_event_time, state
FROM drift_state FINAL
WHERE tenant = {tenant:String} AND agent_id = {agent:String} AND ({card:String} = '' OR card_id = {card:String})
ORDER BY stream_created DESC
LIMIT 1 BY card_id
