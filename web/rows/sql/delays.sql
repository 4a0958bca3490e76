-- Of the newest verdicts. A trace that is judged again later has a newer verdict; the delay is that of the first one.
SELECT count() AS verdicts, ifNotFinite(quantile(0.5)(seconds), 0) AS median, ifNotFinite(quantile(0.99)(seconds), 0) AS slow
FROM
(
    SELECT (toUnixTimestamp64Nano(min(verified_at)) - toUnixTimestamp64Nano(min(received_at))) / 1e9 AS seconds
    FROM
    (
        SELECT agent_id, trace_digest, verified_at, received_at
        FROM verdicts
        PREWHERE received_at >= toDateTime64({since:Int64}, 9, 'UTC')
        WHERE tenant = {tenant:String}
          AND $agents
        ORDER BY received_at DESC
        LIMIT 20000
    )
    GROUP BY agent_id, trace_digest
)
