-- The exporter has a row for each session that it has sealed or holds. A session that it has not is found by its whole id.
SELECT agent_id, session_id, min(first) AS begin, max(last) AS end
FROM
(
    SELECT agent_id, session_id, first_event AS first, last_event AS last
    FROM sessions FINAL
    WHERE tenant = {tenant:String} AND startsWith(session_id, {text:String})
    UNION ALL
    SELECT agent_id, session_id, min(event_time), max(event_time)
    FROM traces
    PREWHERE tenant = {tenant:String} AND session_id = {text:String}
    WHERE {text:String} != ''
    GROUP BY agent_id, session_id
)
WHERE $agents
GROUP BY agent_id, session_id
ORDER BY session_id = {text:String} DESC, end DESC, agent_id, session_id
LIMIT {limit:UInt64}
