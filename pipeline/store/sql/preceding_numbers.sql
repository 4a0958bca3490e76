SELECT tenant, question, argMax(session_id, number) AS last_session, max(number) AS last_number, argMax(event_time, number) AS last_time
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
    SELECT q.1 AS question, q.2 AS agent_id, q.3 AS own_session, q.4 AS greatest, q.5 AS hour_from, q.6 AS until
    FROM
    (
        SELECT arrayJoin(arrayZip(arrayEnumerate({agents:Array(String)}), {agents:Array(String)}, {sessions:Array(String)},
                                  {greatest:Array(UInt64)}, {hours_from:Array(UInt32)}, {until:Array(Int64)})) AS q
    )
) AS asked USING agent_id
WHERE number <= greatest AND event_hour >= hour_from AND toUnixTimestamp64Nano(event_time) <= until AND session_id != own_session
GROUP BY tenant, question
ORDER BY question
