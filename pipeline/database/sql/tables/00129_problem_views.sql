-- +goose Up
-- Views whose cost is that of the traces with a problem, and not of all traces: of 20 million traces, some
-- hundred thousand have one.

-- The current verdicts on traces that have a violation, a finding or no card in any verdict. No other trace
-- has one of them in its current verdict. The set selects whole traces, with all verdicts on them, so a verdict
-- that was replaced does not come back. It is collected from the sizes of two arrays and the status of each
-- verdict. The first eight bytes of a digest are enough for it: that they are equal by chance selects one trace
-- more. FINAL would read the key of every verdict; the inner LIMIT BY collapses copies as FINAL does, and
-- only those of the set.
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
    SELECT
        event_hour, tenant, agent_id, trace_id, trace_digest, event_time, received_at, stream_sequence, session_id, card_id,
        verdict_id, status, verified, recommended_action,
        violations.type AS violation_types, violations.severity AS violation_severities,
        violations.description AS violation_descriptions, violations.trace_field AS violation_fields,
        warnings.type AS warning_types, warnings.description AS warning_descriptions, warnings.trace_field AS warning_fields,
        findings.type AS finding_types, findings.severity AS finding_severities,
        findings.description AS finding_descriptions, findings.trace_field AS finding_fields,
        similarity_score, similarities, mean_similarity, trend,
        algorithm_version, engine_version, profile, card_digest AS judged_by, revoked_at AS card_revoked_at, checks_performed, absent_triggers,
        grounded_claims, inferred_claims, methodology, verified_at
    FROM verdicts
    PREWHERE reinterpretAsUInt64(trace_digest) GLOBAL IN (SELECT reinterpretAsUInt64(trace_digest) FROM verdicts WHERE notEmpty(violations.type) OR notEmpty(findings.type) OR status = 'card_unknown')
    ORDER BY event_hour, tenant, agent_id, trace_id, trace_digest, event_time, session_id, judged_by, engine_version, profile, card_revoked_at, precedence DESC
    LIMIT 1 BY event_hour, tenant, agent_id, trace_id, trace_digest, event_time, session_id, judged_by, engine_version, profile, card_revoked_at
)
ORDER BY event_hour, tenant, agent_id, trace_id, trace_digest, event_time, session_id, status = 'judged' DESC, card_revoked_at DESC, verified_at DESC
LIMIT 1 BY event_hour, tenant, agent_id, trace_id, trace_digest, event_time, session_id
SETTINGS final = 0;

-- Each violation, finding and session finding, with the action that it is about. The digest of a trace
-- determines its action, so the join reads copies without FINAL, and only traces with a problem. It is a right
-- join because the verdicts' side is the smaller one. A session finding names a trace by its id; if the id has
-- several contents, the first is shown.
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
        SELECT event_hour, event_time, digest, action_type, action_name, action_category, tool_name, cost_cents, execution_error, escalation_status
        FROM traces
        PREWHERE reinterpretAsUInt64(digest) GLOBAL IN (SELECT reinterpretAsUInt64(trace_digest) FROM verdicts WHERE notEmpty(violations.type) OR notEmpty(findings.type))
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
    ) AS v ON t.event_hour = v.event_hour AND t.event_time = v.time AND t.digest = v.trace_digest
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
        SELECT tenant, agent_id, session_id, part, max(last_event) AS last_event
        FROM bundles
        WHERE sipHash64(session_id) GLOBAL IN (SELECT sipHash64(session_id) FROM session_verdicts WHERE notEmpty(findings.type))
        GROUP BY tenant, agent_id, session_id, part
    ) AS b ON f.tenant = b.tenant AND f.agent_id = b.agent_id AND f.session_id = b.session_id AND f.part = b.part
    LEFT JOIN
    (
        SELECT tenant, agent_id, trace_id,
               argMin((action_type, action_name, action_category, tool_name, cost_cents, execution_error, escalation_status, card_id, digest_hex), stream_sequence) AS action
        FROM traces
        PREWHERE sipHash64(trace_id) GLOBAL IN (SELECT sipHash64(arrayJoin(findings.trace_id)) FROM session_verdicts)
        GROUP BY tenant, agent_id, trace_id
    ) AS t ON f.tenant = t.tenant AND f.agent_id = t.agent_id AND f.trace_id = t.trace_id
)
SETTINGS do_not_merge_across_partitions_select_final = 0, join_use_nulls = 0;

-- One row for each violation of a current verdict (AAP section 7.5).
CREATE OR REPLACE VIEW violations AS
SELECT
    event_hour, tenant, agent_id, trace_id, digest, event_time, received_at, stream_sequence, session_id, card_id, verdict_id, recommended_action,
    item.1 AS type, CAST(item.2, 'Enum8(\'\' = 0, \'LOW\' = 1, \'MEDIUM\' = 2, \'HIGH\' = 3, \'CRITICAL\' = 4)') AS severity, item.3 AS description, item.4 AS trace_field
FROM notable_verdicts
ARRAY JOIN arrayZip(violation_types, violation_severities, violation_descriptions, violation_fields) AS item;

-- One row for each finding of a current verdict: faults that section 7.5 does not cover.
CREATE OR REPLACE VIEW findings AS
SELECT
    event_hour, tenant, agent_id, trace_id, digest, event_time, received_at, stream_sequence, session_id, card_id, verdict_id, recommended_action,
    item.1 AS type, CAST(item.2, 'Enum8(\'\' = 0, \'LOW\' = 1, \'MEDIUM\' = 2, \'HIGH\' = 3, \'CRITICAL\' = 4)') AS severity, item.3 AS description, item.4 AS trace_field
FROM notable_verdicts
ARRAY JOIN arrayZip(finding_types, finding_severities, finding_descriptions, finding_fields) AS item;

-- Every session, open ones too: as in 00124, but it counts the problems of the verdicts that have any.
CREATE OR REPLACE VIEW session_summary AS
SELECT
    s.tenant AS tenant, s.agent_id AS agent_id, s.session_id AS session_id,
    s.begin AS begin, s.end AS end, begin AS first_event, end AS last_event, s.traces AS traces, s.ended AS ended, s.cost_cents AS cost_cents,
    CAST(multiIf(h.status = 'held', 'held', s.bundles > 0 AND unsealed_traces = 0, 'sealed', 'open'), 'Enum8(\'open\' = 1, \'held\' = 2, \'sealed\' = 3)') AS state, if(state = 'held', h.reason, '') AS held_reason,
    greatest(toInt64(s.traces) - toInt64(s.sealed_traces), toInt64(s.later)) AS unsealed_traces, s.sealed_traces AS sealed_traces,
    s.bundles AS bundles, s.last_bundle AS last_bundle, if(s.bundles = 0, NULL, toNullable(s.sealed_at)) AS sealed_at,
    CAST(f.verdict, 'Enum8(\'\' = 0, \'proceed\' = 1, \'review\' = 2, \'deny\' = 3)') AS verdict,
    v.violations + v.findings + f.findings AS problems, v.critical + f.critical AS critical, v.high + f.high AS high,
    v.medium + f.medium AS medium, v.low + f.low AS low,
    v.violations AS violations, v.findings AS findings, f.findings AS session_findings, v.card_unknown AS card_unknown
FROM
(
    SELECT tenant, agent_id, session_id, min(first) AS begin, max(last) AS end, sum(stored) AS traces, max(marked) AS ended, sum(cost) AS cost_cents,
           sum(sealed) AS sealed_traces, sum(files) AS bundles, argMax(file, at) AS last_bundle, max(at) AS sealed_at,
           sum(above) AS later
    FROM
    (
        SELECT tenant, agent_id, session_id, min(event_time) AS first, max(event_time) AS last, count() AS stored, max(session_end) AS marked, sum(cost_cents) AS cost,
               toUInt64(0) AS sealed, toUInt64(0) AS files, '' AS file, toDateTime64(0, 9, 'UTC') AS at,
               countIf(stream_sequence > reached) AS above
        FROM traces FINAL
        GLOBAL LEFT JOIN (SELECT tenant, agent_id, session_id, max(last_sequence) AS reached FROM bundles GROUP BY tenant, agent_id, session_id) AS b
            USING (tenant, agent_id, session_id)
        GROUP BY tenant, agent_id, session_id
        UNION ALL
        SELECT tenant, agent_id, session_id, min(first_event), max(last_event), 0, false, 0,
               sum(trace_count), count(), argMax(path, part), max(exported_at), 0
        FROM bundles FINAL
        GROUP BY tenant, agent_id, session_id
        UNION ALL
        SELECT tenant, agent_id, session_id, first_event, last_event, 0, ended, 0, 0, 0, '', toDateTime64(0, 9, 'UTC'), 0
        FROM sessions FINAL
        WHERE status = 'held'
    )
    GROUP BY tenant, agent_id, session_id
) AS s
LEFT JOIN
(
    SELECT tenant, agent_id, session_id, sum(length(violation_severities)) AS violations, sum(length(finding_severities)) AS findings,
           sum(countEqual(violation_severities, 'CRITICAL') + countEqual(finding_severities, 'CRITICAL')) AS critical,
           sum(countEqual(violation_severities, 'HIGH') + countEqual(finding_severities, 'HIGH')) AS high,
           sum(countEqual(violation_severities, 'MEDIUM') + countEqual(finding_severities, 'MEDIUM')) AS medium,
           sum(countEqual(violation_severities, 'LOW') + countEqual(finding_severities, 'LOW')) AS low,
           countIf(status = 'card_unknown') AS card_unknown
    FROM notable_verdicts
    GROUP BY tenant, agent_id, session_id
) AS v ON s.tenant = v.tenant AND s.agent_id = v.agent_id AND s.session_id = v.session_id
LEFT JOIN
(
    SELECT tenant, agent_id, session_id, sum(length(finding_types)) AS findings,
           sum(countEqual(finding_severities, 'CRITICAL')) AS critical, sum(countEqual(finding_severities, 'HIGH')) AS high,
           sum(countEqual(finding_severities, 'MEDIUM')) AS medium, sum(countEqual(finding_severities, 'LOW')) AS low,
           multiIf(countIf(recommended_action = 'deny') > 0, 'deny', countIf(recommended_action = 'review') > 0, 'review', 'proceed') AS verdict
    FROM visible_session_verdicts
    GROUP BY tenant, agent_id, session_id
) AS f ON s.tenant = f.tenant AND s.agent_id = f.agent_id AND s.session_id = f.session_id
LEFT JOIN
(
    SELECT tenant, agent_id, session_id, status, reason
    FROM sessions FINAL
) AS h ON s.tenant = h.tenant AND s.agent_id = h.agent_id AND s.session_id = h.session_id
SETTINGS do_not_merge_across_partitions_select_final = 0, join_use_nulls = 0;

-- Every agent with a stored trace or a card, as it is now: as in 00126, but its traces are read once, and of the
-- verdicts only those that count.
CREATE OR REPLACE VIEW agents_now AS
SELECT
    t.tenant AS tenant, t.agent_id AS agent_id,
    if(t.traces = 0, NULL, toNullable(t.last_seen)) AS last_seen, if(t.traces = 0, NULL, toNullable(t.last_event)) AS last_event,
    t.traces_5m AS traces_5m, t.traces_1h AS traces_1h, t.traces_24h AS traces_24h, t.traces AS traces, p.card_unknown AS card_unknown,
    p.problems AS problems_24h, p.critical AS critical_24h, p.high AS high_24h, p.medium AS medium_24h, p.low AS low_24h,
    d.status = 'drift' AS drifting, if(drifting AND k.alert_id != '', toNullable(k.opened_at), NULL) AS drifting_since,
    if(drifting, k.drift_direction, '') AS drift_kind, if(drifting, k.summary, '') AS drift_summary, if(drifting, k.traces, 0) AS drift_traces,
    if(drifting, k.alert_id, '') AS drift_alert_id, d.status AS drift_status, d.similarity AS similarity, d.threshold AS drift_threshold,
    d.card_id AS drift_card_id, d.baseline_id AS baseline_id, d.mode AS baseline_mode, d.drifting_cards AS drifting_cards, l.loops AS open_loops,
    c.card_id AS card_id, if(c.card_id = '', NULL, toNullable(c.issued_at)) AS card_issued_at, c.expires_at AS card_expires_at
FROM
(
    SELECT tenant, agent_id, sum(stored) AS traces, max(seen) AS last_seen, max(event) AS last_event, sum(m5) AS traces_5m, sum(h1) AS traces_1h, sum(h24) AS traces_24h
    FROM
    (
        SELECT tenant, agent_id, count() AS stored, max(received_at) AS seen, max(event_time) AS event,
               countIf(received_at >= now64(9) - INTERVAL 5 MINUTE) AS m5, countIf(received_at >= now64(9) - INTERVAL 1 HOUR) AS h1,
               countIf(received_at >= now64(9) - INTERVAL 1 DAY) AS h24
        FROM traces FINAL
        GROUP BY tenant, agent_id
        UNION ALL
        SELECT DISTINCT tenant, agent_id, toUInt64(0), toDateTime64(0, 9, 'UTC'), toDateTime64(0, 9, 'UTC'), toUInt64(0), toUInt64(0), toUInt64(0) FROM cards
    )
    GROUP BY tenant, agent_id
) AS t
LEFT JOIN
(
    SELECT tenant, agent_id, sum(unjudged) AS card_unknown, sum(length(severities)) AS problems, sum(countEqual(severities, 'CRITICAL')) AS critical,
           sum(countEqual(severities, 'HIGH')) AS high, sum(countEqual(severities, 'MEDIUM')) AS medium, sum(countEqual(severities, 'LOW')) AS low
    FROM
    (
        SELECT tenant, agent_id, status = 'card_unknown' AS unjudged,
               if(received_at >= now64(9) - INTERVAL 1 DAY, arrayConcat(violation_severities, finding_severities), []) AS severities
        FROM notable_verdicts
        UNION ALL
        SELECT tenant, agent_id, 0, finding_severities
        FROM visible_session_verdicts
        WHERE verified_at >= now64(9) - INTERVAL 1 DAY
    )
    GROUP BY tenant, agent_id
) AS p ON t.tenant = p.tenant AND t.agent_id = p.agent_id
LEFT JOIN
(
    SELECT tenant, agent_id, card_id, point.1 AS status, point.2 AS similarity, point.3 AS threshold, point.4 AS baseline_id, point.5 AS mode,
           countIf(point.1 = 'drift') OVER (PARTITION BY tenant, agent_id) AS drifting_cards
    FROM
    (
        SELECT tenant, agent_id, card_id, max((least(event_time, received_at), stream_sequence)) AS at,
               argMax((status, similarity, threshold, baseline_id, mode), (least(event_time, received_at), stream_sequence)) AS point
        FROM visible_drift_points
        WHERE status NOT IN ('late', 'conflict')
        GROUP BY tenant, agent_id, card_id
    )
    ORDER BY tenant, agent_id, at DESC
    LIMIT 1 BY tenant, agent_id
) AS d ON t.tenant = d.tenant AND t.agent_id = d.agent_id
LEFT JOIN
(
    SELECT tenant, agent_id, card_id, newest.1 AS alert_id, newest.2 AS opened_at, newest.3 AS drift_direction, newest.4 AS summary, newest.5 AS traces
    FROM
    (
        SELECT tenant, agent_id, card_id,
               argMax((alert_id, opened_at, drift_direction, summary, count, state), (least(detection_timestamp, received_at), received_at)) AS newest
        FROM visible_drift_alerts
        GROUP BY tenant, agent_id, card_id
    )
    WHERE newest.6 != 'closed'
) AS k ON d.tenant = k.tenant AND d.agent_id = k.agent_id AND d.card_id = k.card_id
LEFT JOIN
(
    SELECT tenant, agent_id, countIf(NOT sealed) AS loops
    FROM visible_loop_alerts
    GROUP BY tenant, agent_id
) AS l ON t.tenant = l.tenant AND t.agent_id = l.agent_id
LEFT JOIN
(
    SELECT tenant, agent_id, card_id, issued_at, expires_at
    FROM visible_cards
    WHERE issued_at <= now64(9) AND (expires_at IS NULL OR expires_at >= now64(9)) AND (revoked_at IS NULL OR revoked_at > now64(9))
    ORDER BY tenant, agent_id, issued_at DESC, registered_at DESC
    LIMIT 1 BY tenant, agent_id
) AS c ON t.tenant = c.tenant AND t.agent_id = c.agent_id
SETTINGS do_not_merge_across_partitions_select_final = 0, join_use_nulls = 0;
