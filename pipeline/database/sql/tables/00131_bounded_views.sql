-- +goose Up
-- Views whose cost is that of the time that is asked for, also where the time is received_at: it may differ between the
-- verdicts on one trace, so a filter on it cannot be applied before the current one is chosen.

-- The current verdicts that have a violation, a finding or no card. Subquery n has the traces of all verdicts, current or
-- not, that have one, with the received_at of each. The join selects whole traces, with all verdicts on them: a verdict
-- that was replaced does not come back. The current verdict is chosen once for each received_at in n, always the same one
-- because the order is total, and is shown where the received_at is its own. So a filter on received_at, like one on
-- another column of n, is applied while n is read, and ClickHouse filters verdicts by the keys of n while it reads them,
-- the last condition first: most rows are left out by their hour, before another column is read. A row that n has twice
-- does no harm: the inner LIMIT BY collapses copies as FINAL does.
CREATE OR REPLACE VIEW notable_verdicts AS
SELECT
    event_hour, tenant, agent_id, trace_id, lower(hex(trace_digest)) AS digest,
    event_time, received_at, stream_sequence, session_id, card_id,
    verdict_id, status, verified, recommended_action,
    violation_types, violation_severities, violation_descriptions, violation_fields, warning_types, warning_descriptions, warning_fields,
    finding_types, finding_severities, finding_descriptions, finding_fields,
    similarity_score, similarities, mean_similarity, trend,
    algorithm_version, engine_version, profile, lower(hex(judged_by)) AS card_digest, card_revoked_at, checks_performed, absent_triggers,
    grounded_claims, inferred_claims, methodology, verified_at
FROM
(
    SELECT *
    FROM
    (
        SELECT
            v.event_hour AS event_hour, tenant, agent_id, trace_id, v.trace_digest AS trace_digest, v.event_time AS event_time,
            v.session_id AS session_id, n.received_at AS received_at, v.received_at AS received, stream_sequence, card_id, verdict_id, status, verified, recommended_action,
            violations.type AS violation_types, violations.severity AS violation_severities,
            violations.description AS violation_descriptions, violations.trace_field AS violation_fields,
            warnings.type AS warning_types, warnings.description AS warning_descriptions, warnings.trace_field AS warning_fields,
            findings.type AS finding_types, findings.severity AS finding_severities,
            findings.description AS finding_descriptions, findings.trace_field AS finding_fields,
            similarity_score, similarities, mean_similarity, trend,
            algorithm_version, engine_version, profile, card_digest AS judged_by, revoked_at AS card_revoked_at, checks_performed, absent_triggers,
            grounded_claims, inferred_claims, methodology, verified_at
        FROM verdicts AS v
        INNER JOIN
        (
            SELECT event_hour, trace_digest, event_time, session_id, received_at
            FROM verdicts
            WHERE notEmpty(violations.type) OR notEmpty(findings.type) OR status = 'card_unknown'
        ) AS n ON v.session_id = n.session_id AND v.trace_digest = n.trace_digest AND v.event_time = n.event_time AND v.event_hour = n.event_hour
        ORDER BY event_hour, tenant, agent_id, trace_id, trace_digest, event_time, session_id, received_at, judged_by, engine_version, profile, card_revoked_at, precedence DESC, received
        LIMIT 1 BY event_hour, tenant, agent_id, trace_id, trace_digest, event_time, session_id, received_at, judged_by, engine_version, profile, card_revoked_at
    )
    ORDER BY event_hour, tenant, agent_id, trace_id, trace_digest, event_time, session_id, received_at, status = 'judged' DESC, card_revoked_at DESC, verified_at DESC,
        judged_by, engine_version, profile
    LIMIT 1 BY event_hour, tenant, agent_id, trace_id, trace_digest, event_time, session_id, received_at
)
WHERE received = received_at AND (notEmpty(violation_types) OR notEmpty(finding_types) OR status = 'card_unknown')
SETTINGS final = 0, distributed_product_mode = 'global';

-- Each violation, finding and session finding, with the action that it is about. The digest of a trace
-- determines its action, so the join reads copies without FINAL, and only traces with a problem: those of subquery n, which
-- is bounded as in notable_verdicts. It is a right join because the verdicts' side is the smaller one. A session finding
-- names a trace by its id; if the id has several contents, the first is shown. Only bundles of sessions with a finding are
-- read, and verified_at is a key of that join: it bounds the sessions.
CREATE OR REPLACE VIEW problems AS
SELECT
    event_hour, tenant, time, agent_id, session_id, trace_id, source, type, severity, field, message,
    action_type, action_name, action_category, tool_name, cost_cents, execution_error, escalation_status,
    card_id, recommended_action, received_at, found_at, digest, part
FROM
(
    SELECT
        v.event_hour AS event_hour, v.tenant AS tenant, v.time AS time, v.agent_id AS agent_id, v.session_id AS session_id, v.trace_id AS trace_id,
        CAST(v.source, 'Enum8(\'violation\' = 1, \'finding\' = 2, \'session_finding\' = 3)') AS source, v.type AS type, CAST(v.severity, 'Enum8(\'\' = 0, \'LOW\' = 1, \'MEDIUM\' = 2, \'HIGH\' = 3, \'CRITICAL\' = 4)') AS severity, v.field AS field, v.message AS message,
        t.action_type AS action_type, t.action_name AS action_name, t.action_category AS action_category, t.tool_name AS tool_name,
        t.cost_cents AS cost_cents, t.execution_error AS execution_error, t.escalation_status AS escalation_status,
        v.card_id AS card_id, v.recommended_action AS recommended_action, v.received_at AS received_at,
        v.found_at AS found_at, v.digest AS digest, toUInt32(0) AS part
    FROM
    (
        SELECT t.event_hour AS event_hour, t.event_time AS event_time, digest, t.session_id AS session_id, n.received_at AS received_at,
               action_type, action_name, action_category, tool_name, cost_cents, execution_error, escalation_status
        FROM traces AS t
        INNER JOIN
        (
            SELECT event_hour, trace_digest, event_time, session_id, received_at
            FROM verdicts
            WHERE notEmpty(violations.type) OR notEmpty(findings.type)
        ) AS n ON t.session_id = n.session_id AND t.digest = n.trace_digest AND t.event_time = n.event_time AND t.event_hour = n.event_hour
    ) AS t
    ANY RIGHT JOIN
    (
        SELECT event_hour, tenant, agent_id, toFixedString(unhex(digest), 32) AS trace_digest, digest, event_time AS time, received_at, verified_at AS found_at,
               session_id, trace_id, card_id, recommended_action,
               item.1 AS source, item.2 AS type, item.3 AS severity, item.4 AS message, item.5 AS field
        FROM notable_verdicts
        ARRAY JOIN arrayConcat(
            arrayMap((t, s, d, f) -> ('violation', t, s, d, f), violation_types, violation_severities, violation_descriptions, violation_fields),
            arrayMap((t, s, d, f) -> ('finding', t, s, d, f), finding_types, finding_severities, finding_descriptions, finding_fields)) AS item
        WHERE notEmpty(violation_types) OR notEmpty(finding_types)
    ) AS v ON t.session_id = v.session_id AND t.received_at = v.received_at AND t.digest = v.trace_digest AND t.event_time = v.time AND t.event_hour = v.event_hour
    UNION ALL
    SELECT
        toUInt32(intDiv(toUnixTimestamp64Nano(time), 3600000000000)) AS event_hour, f.tenant AS tenant, if(b.part = 0, f.verified_at, b.last_event) AS time,
        f.agent_id AS agent_id, f.session_id AS session_id, f.trace_id AS trace_id,
        CAST('session_finding', 'Enum8(\'violation\' = 1, \'finding\' = 2, \'session_finding\' = 3)') AS source, f.type AS type, f.severity AS severity, f.trace_field AS field, f.description AS message,
        t.action.1 AS action_type, t.action.2 AS action_name, t.action.3 AS action_category, t.action.4 AS tool_name,
        t.action.5 AS cost_cents, t.action.6 AS execution_error, t.action.7 AS escalation_status,
        t.action.8 AS card_id, f.recommended_action AS recommended_action, f.verified_at AS received_at, f.verified_at AS found_at,
        t.action.9 AS digest, f.part AS part
    FROM session_findings AS f
    LEFT JOIN
    (
        SELECT b.tenant AS tenant, b.agent_id AS agent_id, b.session_id AS session_id, b.part AS part, n.verified_at AS verified_at, max(last_event) AS last_event
        FROM bundles AS b
        INNER JOIN
        (
            SELECT tenant, agent_id, session_id, part, verified_at
            FROM session_verdicts
            WHERE notEmpty(findings.type)
        ) AS n ON b.tenant = n.tenant AND b.agent_id = n.agent_id AND b.part = n.part AND b.session_id = n.session_id
        GROUP BY tenant, agent_id, session_id, part, verified_at
    ) AS b ON f.tenant = b.tenant AND f.agent_id = b.agent_id AND f.session_id = b.session_id AND f.part = b.part AND f.verified_at = b.verified_at
    LEFT JOIN
    (
        SELECT tenant, agent_id, trace_id,
               argMin((action_type, action_name, action_category, tool_name, cost_cents, execution_error, escalation_status, card_id, digest_hex), stream_sequence) AS action
        FROM traces
        PREWHERE sipHash64(trace_id) GLOBAL IN (SELECT sipHash64(arrayJoin(findings.trace_id)) FROM session_verdicts)
        GROUP BY tenant, agent_id, trace_id
    ) AS t ON f.tenant = t.tenant AND f.agent_id = t.agent_id AND f.trace_id = t.trace_id
)
SETTINGS do_not_merge_across_partitions_select_final = 0, join_use_nulls = 0, distributed_product_mode = 'global';

