-- As in view notable_verdicts, the current verdict of a trace is the newest one that could be reached, and the set selects
-- traces with a problem in any verdict. "place" orders problems of one time; it is a property of the problem, so a
-- page that begins after it does not change.
SELECT time, agent_id, source, type, severity, leftUTF8(message, 1000) AS message, leftUTF8(field, 600) AS field, session_id, trace_id, place
FROM
(
    SELECT *, cityHash64(source, type, severity, message, field, agent_id, session_id, trace_id, digest) AS place
    FROM
    (
        SELECT event_time AS time, agent_id, item.1 AS source, item.2 AS type, item.3 AS severity, item.4 AS message, item.5 AS field, session_id, trace_id, lower(hex(trace_digest)) AS digest
        FROM
        (
            SELECT event_time, agent_id, trace_id, trace_digest, session_id,
                   violations.type AS vt, violations.severity AS vs, violations.description AS vd, violations.trace_field AS vf,
                   findings.type AS ft, findings.severity AS fs, findings.description AS fd, findings.trace_field AS ff
            FROM verdicts
            PREWHERE tenant = {tenant:String} AND event_hour BETWEEN {from_hour:UInt32} AND {to_hour:UInt32}
                 AND ({agent:String} = '' OR agent_id = {agent:String}) AND trace_digest GLOBAL IN
            (
                SELECT trace_digest
                FROM verdicts
                PREWHERE tenant = {tenant:String} AND event_hour BETWEEN {from_hour:UInt32} AND {to_hour:UInt32} AND ({agent:String} = '' OR agent_id = {agent:String})
                WHERE $agents AND (notEmpty(violations.type) OR notEmpty(findings.type))
            )
            WHERE $agents
            ORDER BY agent_id, trace_id, trace_digest, status = 'judged' DESC, revoked_at DESC, verified_at DESC
            LIMIT 1 BY agent_id, trace_id, trace_digest
        )
        ARRAY JOIN arrayConcat(
            arrayMap((t, s, d, f) -> ('violation', toString(t), toString(s), d, f), vt, vs, vd, vf),
            arrayMap((t, s, d, f) -> ('finding', toString(t), toString(s), d, f), ft, fs, fd, ff)) AS item
        UNION ALL
        SELECT verified_at AS time, agent_id, 'session_finding' AS source, toString(item.1) AS type, toString(item.2) AS severity, item.3 AS message, item.5 AS field, session_id, item.4 AS trace_id, '' AS digest
        FROM visible_session_verdicts
        ARRAY JOIN arrayZip(finding_types, finding_severities, finding_descriptions, finding_traces, finding_fields) AS item
        WHERE tenant = {tenant:String} AND ({agent:String} = '' OR agent_id = {agent:String})
          AND $agents
    )
)
WHERE toUnixTimestamp64Nano(time) >= {from:Int64} AND toUnixTimestamp64Nano(time) < {to:Int64}
  AND ({type:String} = '' OR type = {type:String})
  AND indexOf(['LOW', 'MEDIUM', 'HIGH', 'CRITICAL'], severity) >= {least:UInt8}
  AND (toUnixTimestamp64Nano(time), place) < ({after_time:Int64}, {after_place:UInt64})
ORDER BY time DESC, place DESC
LIMIT {limit:UInt64}
