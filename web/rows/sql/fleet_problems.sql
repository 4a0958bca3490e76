-- Each verdict with a problem counts, and those that another verdict on their trace replaced are taken away again: nearly
-- every trace has one verdict, so few are put in an order. As in view notable_verdicts, the current verdict of a trace is
-- the newest one that could be reached. Eight bytes of a digest are enough to select traces: where they are equal by
-- chance, one more is put in its order.
SELECT agent_id, source, type, severity, toUInt64(sum(times)) AS problems, uniq(of_agent) AS agents,
       toUInt64(sumIf(times, of_severity = 'CRITICAL')) AS critical, toUInt64(sumIf(times, of_severity = 'HIGH')) AS high
FROM
(
    SELECT agent_id, agent_id AS of_agent, item.1 AS source, item.2 AS type, item.3 AS severity, severity AS of_severity, sum(verdicts) AS times
    FROM
    (
        SELECT agent_id, violations.type AS violation_types, violations.severity AS violation_severities,
               findings.type AS finding_types, findings.severity AS finding_severities, toInt64(count()) AS verdicts
        FROM verdicts
        PREWHERE received_at >= toDateTime64({since:Int64}, 9, 'UTC') AND (notEmpty(violations.type) OR notEmpty(findings.type))
        WHERE tenant = {tenant:String} AND $agents
        GROUP BY ALL
        UNION ALL
        SELECT agent_id, violation_types, violation_severities, finding_types, finding_severities, toInt64(-1) AS verdicts
        FROM
        (
            SELECT agent_id, violations.type AS violation_types, violations.severity AS violation_severities,
                   findings.type AS finding_types, findings.severity AS finding_severities,
                   row_number() OVER (PARTITION BY trace_digest ORDER BY status = 'judged' DESC, revoked_at DESC, verified_at DESC) AS place
            FROM verdicts
            PREWHERE received_at >= toDateTime64({since:Int64}, 9, 'UTC') AND reinterpretAsUInt64(trace_digest) GLOBAL IN
            (
                SELECT reinterpretAsUInt64(trace_digest) AS of_trace
                FROM verdicts
                PREWHERE received_at >= toDateTime64({since:Int64}, 9, 'UTC') AND of_trace GLOBAL IN
                (
                    SELECT reinterpretAsUInt64(trace_digest)
                    FROM verdicts
                    PREWHERE received_at >= toDateTime64({since:Int64}, 9, 'UTC') AND (notEmpty(violations.type) OR notEmpty(findings.type))
                    WHERE tenant = {tenant:String} AND $agents
                )
                WHERE tenant = {tenant:String} AND $agents
                GROUP BY of_trace
                HAVING count() > 1
            )
            WHERE tenant = {tenant:String} AND $agents
        )
        WHERE place > 1
    )
    ARRAY JOIN arrayConcat(
        arrayMap((t, s) -> ('violation', toString(t), toString(s)), violation_types, violation_severities),
        arrayMap((t, s) -> ('finding', toString(t), toString(s)), finding_types, finding_severities)) AS item
    GROUP BY agent_id, source, type, severity
    HAVING times > 0
    UNION ALL
    SELECT agent_id, agent_id AS of_agent, 'session_finding' AS source, toString(item.1) AS type, toString(item.2) AS severity, severity AS of_severity, toInt64(1) AS times
    FROM visible_session_verdicts
    ARRAY JOIN arrayZip(finding_types, finding_severities) AS item
    WHERE tenant = {tenant:String} AND verified_at >= toDateTime64({since:Int64}, 9, 'UTC')
      AND $agents
)
GROUP BY GROUPING SETS ((source, type, severity), (agent_id))
ORDER BY problems DESC, source, type, agent_id
LIMIT {limit:UInt64} BY agent_id = ''
