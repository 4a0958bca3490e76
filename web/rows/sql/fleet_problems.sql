-- As in view notable_verdicts, the current verdict of a trace is the newest one that could be reached. The set
-- selects traces with a problem in any verdict, by eight bytes of their digests; no other trace has one in its current
-- verdict.
SELECT agent_id, source, type, severity, count() AS problems, uniq(of_agent) AS agents,
       countIf(of_severity = 'CRITICAL') AS critical, countIf(of_severity = 'HIGH') AS high
FROM
(
    SELECT agent_id, agent_id AS of_agent, item.1 AS source, item.2 AS type, item.3 AS severity, item.3 AS of_severity
    FROM
    (
        SELECT agent_id, trace_digest, violations.type AS violation_types, violations.severity AS violation_severities,
               findings.type AS finding_types, findings.severity AS finding_severities
        FROM verdicts
        PREWHERE received_at >= toDateTime64({since:Int64}, 9, 'UTC') AND reinterpretAsUInt64(trace_digest) GLOBAL IN
        (
            SELECT reinterpretAsUInt64(trace_digest)
            FROM verdicts
            PREWHERE received_at >= toDateTime64({since:Int64}, 9, 'UTC')
            WHERE tenant = {tenant:String} AND (notEmpty(violations.type) OR notEmpty(findings.type))
        )
        WHERE tenant = {tenant:String}
          AND ({every:UInt8} OR has({agents:Array(String)}, agent_id) OR arrayExists(prefix -> startsWith(agent_id, prefix), {prefixes:Array(String)}))
        ORDER BY reinterpretAsUInt64(trace_digest), trace_digest, status = 'judged' DESC, revoked_at DESC, verified_at DESC
        LIMIT 1 BY trace_digest
    )
    ARRAY JOIN arrayConcat(
        arrayMap((t, s) -> ('violation', toString(t), toString(s)), violation_types, violation_severities),
        arrayMap((t, s) -> ('finding', toString(t), toString(s)), finding_types, finding_severities)) AS item
    UNION ALL
    SELECT agent_id, agent_id AS of_agent, 'session_finding' AS source, toString(item.1) AS type, toString(item.2) AS severity, severity AS of_severity
    FROM visible_session_verdicts
    ARRAY JOIN arrayZip(finding_types, finding_severities) AS item
    WHERE tenant = {tenant:String} AND verified_at >= toDateTime64({since:Int64}, 9, 'UTC')
      AND ({every:UInt8} OR has({agents:Array(String)}, agent_id) OR arrayExists(prefix -> startsWith(agent_id, prefix), {prefixes:Array(String)}))
)
GROUP BY GROUPING SETS ((source, type, severity), (agent_id))
ORDER BY problems DESC, source, type, agent_id
LIMIT {limit:UInt64} BY agent_id = ''
