-- +goose Up
-- Views of earlier files in their present form.

-- The drift measurement of each trace, once. A replay with a newer engine writes every point again, under
-- the name of that engine; the newest is shown. A longer name has a number of more digits.
CREATE OR REPLACE VIEW visible_drift_points AS
SELECT
    event_hour, tenant, agent_id, card_id, trace_id, trace_digest_hex AS digest, engine_version,
    event_time, received_at, stream_sequence, session_id, status, similarity, threshold, streak, methodology,
    mode, baseline_id_hex AS baseline_id
FROM drift_points FINAL
ORDER BY event_hour, tenant, agent_id, card_id, trace_id, trace_digest, event_time, length(engine_version) DESC, engine_version DESC
LIMIT 1 BY event_hour, tenant, agent_id, card_id, trace_id, trace_digest, event_time
SETTINGS do_not_merge_across_partitions_select_final = 0;

-- Drift alerts, each once. A newer engine gives an alert on the same streak another id; the newest is
-- shown.
CREATE OR REPLACE VIEW visible_drift_alerts AS
SELECT
    tenant, agent_id, alert_id_hex AS alert_id, alert_type, card_id, detection_timestamp, received_at,
    similarity_score, sustained_traces, threshold, drift_direction,
    arrayZip(specific_indicators.indicator, specific_indicators.baseline,
             specific_indicators.current, specific_indicators.description) AS specific_indicators,
    recommendation, trace_ids, engine_version, methodology, mode, baseline_id_hex AS baseline_id
FROM drift_alerts FINAL
ORDER BY tenant, agent_id, card_id, trace_ids, length(engine_version) DESC, engine_version DESC
LIMIT 1 BY tenant, agent_id, card_id, trace_ids
SETTINGS do_not_merge_across_partitions_select_final = 0;

-- Cards, each once, and whether and why each was revoked.
CREATE OR REPLACE VIEW visible_cards AS
SELECT
    c.tenant AS tenant, c.agent_id AS agent_id, c.card_id AS card_id, c.digest_hex AS digest, registered_at, shape, aap_version, issued_at, expires_at,
    if(r.card_id = '', NULL, toNullable(r.revoked_at)) AS revoked_at, r.reason AS revocation_reason,
    principal_type, principal_identifier, relationship, escalation_contact,
    declared_values, arrayZip(value_definitions.id, value_definitions.name, value_definitions.description, value_definitions.priority) AS value_definitions,
    conflicts_with, hierarchy, bounded_actions, forbidden_actions,
    arrayZip(escalation_triggers.condition, escalation_triggers.action, escalation_triggers.reason) AS escalation_triggers,
    max_value_amount, max_value_currency, trace_format, retention_days, storage_type, storage_location,
    queryable, query_endpoint, tamper_evidence, extensions, raw
FROM (SELECT *, digest_hex, extensions FROM cards FINAL) AS c
LEFT JOIN (SELECT tenant, agent_id, card_id, revoked_at, reason FROM revocations FINAL) AS r
    ON c.tenant = r.tenant AND c.agent_id = r.agent_id AND c.card_id = r.card_id
SETTINGS join_use_nulls = 0;

-- A severity is an Enum, so that it is ordered by its weight and not by its letters: HIGH is above LOW.

-- One row for each violation of a current verdict (AAP section 7.5).
CREATE OR REPLACE VIEW violations AS
SELECT
    event_hour, tenant, agent_id, trace_id, digest, event_time, received_at, stream_sequence, session_id, card_id, verdict_id, recommended_action,
    item.1 AS type, CAST(item.2, 'Enum8(\'\' = 0, \'LOW\' = 1, \'MEDIUM\' = 2, \'HIGH\' = 3, \'CRITICAL\' = 4)') AS severity, item.3 AS description, item.4 AS trace_field
FROM current_verdicts
ARRAY JOIN arrayZip(violation_types, violation_severities, violation_descriptions, violation_fields) AS item;

-- One row for each finding of a current verdict: faults that section 7.5 does not cover.
CREATE OR REPLACE VIEW findings AS
SELECT
    event_hour, tenant, agent_id, trace_id, digest, event_time, received_at, stream_sequence, session_id, card_id, verdict_id, recommended_action,
    item.1 AS type, CAST(item.2, 'Enum8(\'\' = 0, \'LOW\' = 1, \'MEDIUM\' = 2, \'HIGH\' = 3, \'CRITICAL\' = 4)') AS severity, item.3 AS description, item.4 AS trace_field
FROM current_verdicts
ARRAY JOIN arrayZip(finding_types, finding_severities, finding_descriptions, finding_fields) AS item;

-- One row for each finding of a verdict on a session. trace_id is empty if the finding is about no
-- single trace.
CREATE OR REPLACE VIEW session_findings AS
SELECT
    tenant, agent_id, session_id, part, verified_at, recommended_action,
    item.1 AS type, CAST(item.2, 'Enum8(\'\' = 0, \'LOW\' = 1, \'MEDIUM\' = 2, \'HIGH\' = 3, \'CRITICAL\' = 4)') AS severity, item.3 AS description, item.4 AS trace_id, item.5 AS trace_field
FROM visible_session_verdicts
ARRAY JOIN arrayZip(finding_types, finding_severities, finding_descriptions, finding_traces, finding_fields) AS item;
