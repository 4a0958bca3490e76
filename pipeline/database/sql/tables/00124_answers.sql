-- +goose Up
-- Views that answer the first questions of a fleet's owner without a join. They read the same rows as
-- the views that they use, so copies count once, and changed verdicts and retention take effect.

-- Each violation, finding and session finding, with the action that it is about. The digest of a trace
-- determines its action, so the join reads copies without FINAL. It is a right join because only the
-- verdicts' side is small enough for memory: without its WHERE it would hold the columns of all verdicts.
-- A session finding names a trace by its id; if the id has
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
    ) AS t
    ANY RIGHT JOIN
    (
        SELECT event_hour, tenant, agent_id, toFixedString(unhex(digest), 32) AS trace_digest, digest, event_time AS time, received_at, verified_at AS found_at,
               session_id, trace_id, card_id, recommended_action,
               item.1 AS source, item.2 AS type, item.3 AS severity, item.4 AS message, item.5 AS field
        FROM current_verdicts
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
        GROUP BY tenant, agent_id, session_id, part
    ) AS b ON f.tenant = b.tenant AND f.agent_id = b.agent_id AND f.session_id = b.session_id AND f.part = b.part
    LEFT JOIN
    (
        SELECT tenant, agent_id, trace_id,
               argMin((action_type, action_name, action_category, tool_name, cost_cents, execution_error, escalation_status, card_id, digest_hex), stream_sequence) AS action
        FROM traces
        WHERE trace_id GLOBAL IN (SELECT arrayJoin(findings.trace_id) FROM session_verdicts)
        GROUP BY tenant, agent_id, trace_id
    ) AS t ON f.tenant = t.tenant AND f.agent_id = t.agent_id AND f.trace_id = t.trace_id
)
SETTINGS do_not_merge_across_partitions_select_final = 0, join_use_nulls = 0;

-- Every agent with a stored trace or a card, as it is now. Drift is measured for each card of an agent
-- separately; the agent's state is that of the card that its latest measured trace names. Traces are in
-- the order in which drift measures them (ADR 3): one that is dated ahead stands where it arrived. A
-- streak begins with the latest trace whose streak is 1.
CREATE OR REPLACE VIEW agents_now AS
SELECT
    a.tenant AS tenant, a.agent_id AS agent_id,
    if(t.traces = 0, NULL, toNullable(t.last_seen)) AS last_seen, if(t.traces = 0, NULL, toNullable(t.last_event)) AS last_event,
    t.traces_5m AS traces_5m, t.traces_1h AS traces_1h, t.traces_24h AS traces_24h, t.traces AS traces, p.card_unknown AS card_unknown,
    p.problems AS problems_24h, p.critical AS critical_24h, p.high AS high_24h, p.medium AS medium_24h, p.low AS low_24h,
    d.status = 'drift' AS drifting, if(d.status = 'drift', toNullable(d.since), NULL) AS drifting_since,
    if(d.status = 'drift', k.drift_direction, '') AS drift_kind, d.status AS drift_status, d.similarity AS similarity, d.threshold AS drift_threshold,
    d.card_id AS drift_card_id, d.baseline_id AS baseline_id, d.mode AS baseline_mode,
    c.card_id AS card_id, if(c.card_id = '', NULL, toNullable(c.issued_at)) AS card_issued_at, c.expires_at AS card_expires_at
FROM
(
    SELECT tenant, agent_id FROM traces
    UNION DISTINCT
    SELECT tenant, agent_id FROM cards
) AS a
LEFT JOIN
(
    SELECT tenant, agent_id, count() AS traces, max(received_at) AS last_seen, max(event_time) AS last_event,
           countIf(received_at >= now64(9) - INTERVAL 5 MINUTE) AS traces_5m, countIf(received_at >= now64(9) - INTERVAL 1 HOUR) AS traces_1h,
           countIf(received_at >= now64(9) - INTERVAL 1 DAY) AS traces_24h
    FROM traces FINAL
    GROUP BY tenant, agent_id
) AS t ON a.tenant = t.tenant AND a.agent_id = t.agent_id
LEFT JOIN
(
    SELECT tenant, agent_id, sum(unjudged) AS card_unknown, sum(length(severities)) AS problems, sum(countEqual(severities, 'CRITICAL')) AS critical,
           sum(countEqual(severities, 'HIGH')) AS high, sum(countEqual(severities, 'MEDIUM')) AS medium, sum(countEqual(severities, 'LOW')) AS low
    FROM
    (
        SELECT tenant, agent_id, status = 'card_unknown' AS unjudged,
               if(received_at >= now64(9) - INTERVAL 1 DAY, arrayConcat(violation_severities, finding_severities), []) AS severities
        FROM current_verdicts
        UNION ALL
        SELECT tenant, agent_id, 0, finding_severities
        FROM visible_session_verdicts
        WHERE verified_at >= now64(9) - INTERVAL 1 DAY
    )
    GROUP BY tenant, agent_id
) AS p ON a.tenant = p.tenant AND a.agent_id = p.agent_id
LEFT JOIN
(
    SELECT tenant, agent_id, card_id, since, point.1 AS status, point.2 AS similarity, point.3 AS threshold, point.4 AS baseline_id, point.5 AS mode
    FROM
    (
        SELECT tenant, agent_id, card_id, max((least(event_time, received_at), stream_sequence)) AS at,
               argMaxIf(event_time, (least(event_time, received_at), stream_sequence), streak = 1) AS since,
               argMax((status, similarity, threshold, baseline_id, mode), (least(event_time, received_at), stream_sequence)) AS point
        FROM visible_drift_points
        WHERE status NOT IN ('late', 'conflict')
        GROUP BY tenant, agent_id, card_id
    )
    ORDER BY tenant, agent_id, at DESC
    LIMIT 1 BY tenant, agent_id
) AS d ON a.tenant = d.tenant AND a.agent_id = d.agent_id
LEFT JOIN
(
    SELECT tenant, agent_id, card_id, argMax(drift_direction, (least(detection_timestamp, received_at), received_at)) AS drift_direction
    FROM visible_drift_alerts
    GROUP BY tenant, agent_id, card_id
) AS k ON d.tenant = k.tenant AND d.agent_id = k.agent_id AND d.card_id = k.card_id
LEFT JOIN
(
    SELECT tenant, agent_id, card_id, issued_at, expires_at
    FROM visible_cards
    WHERE issued_at <= now64(9) AND (expires_at IS NULL OR expires_at >= now64(9)) AND (revoked_at IS NULL OR revoked_at > now64(9))
    ORDER BY tenant, agent_id, issued_at DESC, registered_at DESC
    LIMIT 1 BY tenant, agent_id
) AS c ON a.tenant = c.tenant AND a.agent_id = c.agent_id
SETTINGS do_not_merge_across_partitions_select_final = 0, join_use_nulls = 0;

-- Every session, open ones too. Bundles stay when retention has removed their traces, so a session may
-- have fewer traces than its bundles and still have unsealed ones: those above the highest number in
-- the broker's stream that a bundle reaches. A trace below it is unsealed if its receipt came too late.
-- A held session may have no trace at all: its rows are missing.
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
    FROM current_verdicts
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

-- What each agent did on each day. A filter on day reads the rows of these days only.
CREATE OR REPLACE VIEW agents_daily AS
SELECT
    tenant, day, agent_id, sum(stored) AS traces, sum(acted) AS executed, sum(errors) AS failed, sum(asked) AS escalated, sum(cost) AS cost_cents,
    sum(opened) AS sessions, sum(unjudged) AS card_unknown, sum(found) AS problems, sum(c) AS critical, sum(h) AS high, sum(m) AS medium, sum(l) AS low
FROM
(
    SELECT tenant, toDate(intDiv(event_hour, 24)) AS day, agent_id, count() AS stored, countIf(action_type = 'execute') AS acted,
           countIf(execution_error != '') AS errors, countIf(escalation_required) AS asked, sum(cost_cents) AS cost, uniqExact(session_id) AS opened,
           toUInt64(0) AS unjudged, toUInt64(0) AS found, toUInt64(0) AS c, toUInt64(0) AS h, toUInt64(0) AS m, toUInt64(0) AS l
    FROM traces FINAL
    GROUP BY tenant, day, agent_id
    UNION ALL
    SELECT tenant, toDate(intDiv(event_hour, 24)) AS day, agent_id, 0, 0, 0, 0, 0, 0, countIf(status = 'card_unknown'), sum(length(severities)), sum(countEqual(severities, 'CRITICAL')),
           sum(countEqual(severities, 'HIGH')), sum(countEqual(severities, 'MEDIUM')), sum(countEqual(severities, 'LOW'))
    FROM
    (
        SELECT tenant, event_hour, agent_id, status, arrayConcat(violation_severities, finding_severities) AS severities
        FROM current_verdicts
    )
    GROUP BY tenant, day, agent_id
    UNION ALL
    SELECT f.tenant AS tenant, toDate(intDiv(toUnixTimestamp64Nano(if(b.part = 0, f.verified_at, b.last_event)), 86400000000000)) AS day, f.agent_id AS agent_id,
           0, 0, 0, 0, 0, 0, 0, sum(length(f.finding_severities)), sum(countEqual(f.finding_severities, 'CRITICAL')),
           sum(countEqual(f.finding_severities, 'HIGH')), sum(countEqual(f.finding_severities, 'MEDIUM')), sum(countEqual(f.finding_severities, 'LOW'))
    FROM visible_session_verdicts AS f
    LEFT JOIN
    (
        SELECT tenant, agent_id, session_id, part, max(last_event) AS last_event
        FROM bundles
        GROUP BY tenant, agent_id, session_id, part
    ) AS b ON f.tenant = b.tenant AND f.agent_id = b.agent_id AND f.session_id = b.session_id AND f.part = b.part
    GROUP BY tenant, day, agent_id
)
GROUP BY tenant, day, agent_id
SETTINGS do_not_merge_across_partitions_select_final = 0, join_use_nulls = 0;

-- How often each problem occurred with each agent on each day.
CREATE OR REPLACE VIEW problems_daily AS
SELECT
    tenant, toDate(intDiv(event_hour, 24)) AS day, agent_id, source, type, severity,
    count() AS problems, uniqExactIf(trace_id, trace_id != '') AS traces, uniqExact(session_id) AS sessions
FROM problems
GROUP BY tenant, day, agent_id, source, type, severity;
