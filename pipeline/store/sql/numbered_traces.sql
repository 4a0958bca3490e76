SELECT tenant, question, session_id, number, min(event_time) AS earliest
FROM
(
    SELECT tenant, agent_id, session_id, event_hour, event_time, assumeNotNull(sequence_number) AS number
    FROM traces
    PREWHERE tenant = {tenant:String}
      AND event_hour BETWEEN arrayMin({hours_from:Array(UInt32)}) AND arrayMax({hours_to:Array(UInt32)})
      AND agent_id IN {agents:Array(String)}
    WHERE sequence_number IS NOT NULL
) AS stored
INNER JOIN
(
    SELECT q.1 AS question, q.2 AS agent_id, q.3 AS least, q.4 AS greatest, q.5 AS hour_from, q.6 AS hour_to
    FROM
    (
        SELECT arrayJoin(arrayZip(arrayEnumerate({agents:Array(String)}), {agents:Array(String)}, {least:Array(UInt64)},
                                  {greatest:Array(UInt64)}, {hours_from:Array(UInt32)}, {hours_to:Array(UInt32)})) AS q
    )
) AS asked USING agent_id
WHERE number BETWEEN least AND greatest AND event_hour BETWEEN hour_from AND hour_to
GROUP BY tenant, question, session_id, number
ORDER BY question, number
LIMIT {limit:UInt64} BY question
