-- +goose Up
-- Views of earlier files that take less CPU, and have the same rows.

-- The current verdict on each trace. A judgement takes precedence over "card unknown", then a verdict
-- that considers the revocation of its card, then the newest. The order is that of the table's key,
-- so picking the first row of each trace is cheap. event_time and session_id are the same in all
-- verdicts on a trace: with them in LIMIT BY, a filter on them is applied before it, and with them in
-- ORDER BY, too, LIMIT BY needs no memory. One thread reads: the rows must be one sorted stream in any case, and to
-- merge those of several threads took more than they saved.
CREATE OR REPLACE VIEW current_verdicts AS
SELECT
    event_hour, tenant, agent_id, trace_id, trace_digest_hex AS digest,
    event_time, received_at, stream_sequence, session_id, card_id,
    verdict_id, status, verified, recommended_action,
    violations.type AS violation_types, violations.severity AS violation_severities,
    violations.description AS violation_descriptions, violations.trace_field AS violation_fields,
    warnings.type AS warning_types, warnings.description AS warning_descriptions, warnings.trace_field AS warning_fields,
    findings.type AS finding_types, findings.severity AS finding_severities,
    findings.description AS finding_descriptions, findings.trace_field AS finding_fields,
    similarity_score, similarities, mean_similarity, trend,
    algorithm_version, engine_version, profile, card_digest_hex AS card_digest, revoked_at AS card_revoked_at, checks_performed, absent_triggers,
    grounded_claims, inferred_claims, methodology, verified_at
FROM verdicts FINAL
ORDER BY event_hour, tenant, agent_id, trace_id, trace_digest, event_time, session_id, status = 'judged' DESC, revoked_at DESC, verified_at DESC
LIMIT 1 BY event_hour, tenant, agent_id, trace_id, trace_digest, event_time, session_id
SETTINGS do_not_merge_across_partitions_select_final = 0, max_threads = 1;

-- The drift measurement of each trace, once. A replay with a newer engine writes every point again, under
-- the name of that engine; the newest is shown. A longer name has a number of more digits. One thread reads, as in current_verdicts.
CREATE OR REPLACE VIEW visible_drift_points AS
SELECT
    event_hour, tenant, agent_id, card_id, trace_id, trace_digest_hex AS digest, engine_version,
    event_time, received_at, stream_sequence, session_id, status, similarity, threshold, streak, methodology,
    mode, baseline_id_hex AS baseline_id
FROM drift_points FINAL
ORDER BY event_hour, tenant, agent_id, card_id, trace_id, trace_digest, event_time, length(engine_version) DESC, engine_version DESC
LIMIT 1 BY event_hour, tenant, agent_id, card_id, trace_id, trace_digest, event_time
SETTINGS do_not_merge_across_partitions_select_final = 0, max_threads = 1;

-- What each agent did on each day: as in 00124, but of the verdicts on traces and sessions only those with a problem or
-- without a card are read. A filter on day reads the traces and verdicts of these days only.
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
        FROM notable_verdicts
    )
    GROUP BY tenant, day, agent_id
    UNION ALL
    SELECT f.tenant AS tenant, toDate(intDiv(toUnixTimestamp64Nano(if(b.part = 0, f.verified_at, b.last_event)), 86400000000000)) AS day, f.agent_id AS agent_id,
           0, 0, 0, 0, 0, 0, 0, sum(length(f.finding_severities)), sum(countEqual(f.finding_severities, 'CRITICAL')),
           sum(countEqual(f.finding_severities, 'HIGH')), sum(countEqual(f.finding_severities, 'MEDIUM')), sum(countEqual(f.finding_severities, 'LOW'))
    FROM (SELECT tenant, agent_id, session_id, part, verified_at, finding_severities FROM visible_session_verdicts WHERE notEmpty(finding_severities)) AS f
    LEFT JOIN
    (
        SELECT tenant, agent_id, session_id, part, max(last_event) AS last_event
        FROM bundles
        WHERE sipHash64(session_id) GLOBAL IN (SELECT sipHash64(session_id) FROM session_verdicts WHERE notEmpty(findings.type))
        GROUP BY tenant, agent_id, session_id, part
    ) AS b ON f.tenant = b.tenant AND f.agent_id = b.agent_id AND f.session_id = b.session_id AND f.part = b.part
    GROUP BY tenant, day, agent_id
)
GROUP BY tenant, day, agent_id
SETTINGS do_not_merge_across_partitions_select_final = 0, join_use_nulls = 0;
