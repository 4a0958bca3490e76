SELECT card_id, max(last_event_time) AS last_event
FROM drift_state
PREWHERE tenant = {tenant:String} AND agent_id = {agent:String}
GROUP BY card_id
ORDER BY last_event DESC
LIMIT 50
