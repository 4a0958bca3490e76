-- Of the traces with a problem in any verdict, the set has those with the newest ones in their current verdict. The texts are
-- read of these alone.
SELECT time, source, type, severity, leftUTF8(message, 1000) AS message, leftUTF8(field, 600) AS field, session_id, trace_id, digest
FROM
(
    SELECT event_time AS time, item.1 AS source, item.2 AS type, item.3 AS severity, item.4 AS message, item.5 AS field, session_id, trace_id, lower(hex(trace_digest)) AS digest
    FROM
    (
        SELECT event_time, trace_id, trace_digest, session_id,
               violations.type AS vt, violations.severity AS vs, violations.description AS vd, violations.trace_field AS vf,
               findings.type AS ft, findings.severity AS fs, findings.description AS fd, findings.trace_field AS ff
        FROM verdicts
        PREWHERE tenant = {tenant:String} AND event_hour BETWEEN {from_hour:UInt32} AND {to_hour:UInt32} AND agent_id = {agent:String} AND trace_digest IN
        (
            SELECT trace_digest
            FROM
            (
                SELECT trace_digest, trace_id, event_time, notEmpty(violations.type) OR notEmpty(findings.type) AS has_problem
                FROM verdicts
                PREWHERE tenant = {tenant:String} AND event_hour BETWEEN {from_hour:UInt32} AND {to_hour:UInt32} AND agent_id = {agent:String} AND trace_digest IN
                (
                    SELECT trace_digest
                    FROM verdicts
                    PREWHERE tenant = {tenant:String} AND event_hour BETWEEN {from_hour:UInt32} AND {to_hour:UInt32} AND agent_id = {agent:String}
                         AND (notEmpty(violations.type) OR notEmpty(findings.type))
                )
                WHERE toUnixTimestamp(event_time) >= {from:Int64} AND toUnixTimestamp(event_time) < {to:Int64}
                ORDER BY status = 'judged' DESC, revoked_at DESC, verified_at DESC
                LIMIT 1 BY trace_digest
            )
            WHERE has_problem
            ORDER BY event_time DESC, trace_id
            LIMIT {limit:UInt64}
        )
        ORDER BY trace_id, trace_digest, status = 'judged' DESC, revoked_at DESC, verified_at DESC
        LIMIT 1 BY trace_id, trace_digest
    )
    ARRAY JOIN arrayConcat(
        arrayMap((t, s, d, f) -> ('violation', toString(t), toString(s), d, f), vt, vs, vd, vf),
        arrayMap((t, s, d, f) -> ('finding', toString(t), toString(s), d, f), ft, fs, fd, ff)) AS item
    UNION ALL
    SELECT verified_at AS time, 'session_finding' AS source, toString(item.1) AS type, toString(item.2) AS severity, item.3 AS message, item.5 AS field, session_id, item.4 AS trace_id, '' AS digest
    FROM visible_session_verdicts
    ARRAY JOIN arrayZip(finding_types, finding_severities, finding_descriptions, finding_traces, finding_fields) AS item
    WHERE tenant = {tenant:String} AND agent_id = {agent:String}
      AND toUnixTimestamp(verified_at) >= {from:Int64} AND toUnixTimestamp(verified_at) < {to:Int64} + 86400
)
ORDER BY time DESC, trace_id, type
LIMIT {limit:UInt64}
