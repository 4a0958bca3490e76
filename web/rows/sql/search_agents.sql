SELECT agent_id, max(cards) AS cards, max(seen) AS last_event
FROM
(
    SELECT agent_id, count() AS cards, toDateTime64(0, 9, 'UTC') AS seen
    FROM (SELECT DISTINCT agent_id, card_id FROM cards WHERE tenant = {tenant:String} AND positionCaseInsensitiveUTF8(agent_id, {text:String}) > 0)
    GROUP BY agent_id
    UNION ALL
    SELECT agent_id, 0, max(last_event_time)
    FROM drift_state
    WHERE tenant = {tenant:String} AND positionCaseInsensitiveUTF8(agent_id, {text:String}) > 0
    GROUP BY agent_id
    UNION ALL
    SELECT agent_id, 0, max(event_time)
    FROM traces
    PREWHERE tenant = {tenant:String} AND agent_id = {text:String}
    WHERE {text:String} != ''
    GROUP BY agent_id
)
WHERE $agents
GROUP BY agent_id
ORDER BY agent_id = {text:String} DESC, last_event DESC, agent_id
LIMIT {limit:UInt64}
