SELECT tenant, question, session_id, number, event_time, own_session, until
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
    SELECT q.1 AS question, q.2 AS agent_id, q.3 AS own_session, q.4 AS least, q.5 AS greatest, q.6 AS hour_from, q.7 AS hour_to, q.8 AS until
    FROM
    (
        SELECT arrayJoin(arrayZip(arrayEnumerate({agents:Array(String)}), {agents:Array(String)}, {sessions:Array(String)},
                                  {least:Array(UInt64)}, {greatest:Array(UInt64)},
                                  {hours_from:Array(UInt32)}, {hours_to:Array(UInt32)}, {until:Array(Int64)})) AS q
    )
) AS asked USING agent_id
WHERE number BETWEEN least AND greatest AND event_hour BETWEEN hour_from AND hour_to
