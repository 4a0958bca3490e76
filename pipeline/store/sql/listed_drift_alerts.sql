SELECT a.tenant AS tenant, a.agent_id AS agent_id, a.card_id AS card_id, a.alert_id AS alert_id,
       multiIf(a.state = 'closed', 'closed', a.latest AND p.newest = 'drift', 'open', 'ended') AS state,
       a.opened_at AS opened_at, a.closed_at AS closed_at, a.detection_timestamp AS detection_timestamp, a.revision AS revision,
       a.drift_direction AS drift_direction, a.count AS count, a.strength AS strength, a.measures AS measures,
       if(a.summary = '', arrayStringConcat(a.specific_indicators.4, '. '), a.summary) AS summary, a.last_trace_id AS last_trace_id, a.trace_ids AS trace_ids
FROM
(
    SELECT *, row_number() OVER (PARTITION BY agent_id, card_id ORDER BY least(detection_timestamp, received_at) DESC, received_at DESC) = 1 AS latest
    FROM visible_drift_alerts
    WHERE tenant = {tenant:String} AND ({agent:String} = '' OR agent_id = {agent:String})
) AS a
LEFT JOIN
(
    SELECT agent_id, card_id, argMax(status, (least(event_time, received_at), stream_sequence)) AS newest
    FROM visible_drift_points
    WHERE tenant = {tenant:String} AND status NOT IN ('late', 'conflict')
      AND agent_id IN (SELECT agent_id FROM visible_drift_alerts WHERE tenant = {tenant:String} AND state != 'closed' AND ({agent:String} = '' OR agent_id = {agent:String}))
    GROUP BY agent_id, card_id
) AS p ON a.agent_id = p.agent_id AND a.card_id = p.card_id
WHERE NOT {open:Bool} OR state = 'open'
ORDER BY state = 'open' DESC, opened_at DESC, alert_id
LIMIT {limit:UInt64}
