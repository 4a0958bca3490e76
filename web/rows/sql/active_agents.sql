SELECT agent_id, traces, last_seen, count() OVER () AS all_agents, sum(traces) OVER () AS all_traces
FROM
(
    SELECT agent_id, count() AS traces, max(received_at) AS last_seen
    FROM traces
    PREWHERE received_at >= toDateTime64({since:Int64}, 9, 'UTC')
    WHERE tenant = {tenant:String}
      AND $agents
    GROUP BY agent_id
)
ORDER BY traces DESC, agent_id
LIMIT {limit:UInt64}
