-- Two records may have one trace_id: a conflict. Bundles name trace ids, so records are counted.
SELECT tenant, agent_id, session_id, toUInt64(sum(stored - sealed)) AS traces, min(first) AS first_event, max(last) AS last_event
FROM (
    SELECT tenant, agent_id, session_id, trace_id, toInt64(count()) AS stored, min(event_time) AS first, max(event_time) AS last
    FROM traces FINAL
    PREWHERE tenant = {tenant:String} AND ({agent:String} = '' OR agent_id = {agent:String})
    WHERE event_hour >= {from_hour:UInt32} AND event_hour <= {to_hour:UInt32}
      AND event_time >= fromUnixTimestamp64Nano({from:Int64}, 'UTC') AND event_time < fromUnixTimestamp64Nano({to:Int64}, 'UTC')
    GROUP BY tenant, agent_id, session_id, trace_id
) AS records
GLOBAL LEFT JOIN (
    SELECT agent_id, session_id, arrayJoin(trace_ids) AS trace_id, toInt64(count()) AS sealed
    FROM bundles FINAL
    WHERE tenant = {tenant:String} AND ({agent:String} = '' OR agent_id = {agent:String})
    GROUP BY agent_id, session_id, trace_id
) AS in_bundles USING (agent_id, session_id, trace_id)
WHERE stored > sealed
GROUP BY tenant, agent_id, session_id
ORDER BY agent_id, session_id
