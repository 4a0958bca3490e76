-- +goose Up
-- People filter by event_time, and the tables are sorted by event_hour. With these indexes such a
-- filter skips most of a table, too.
ALTER TABLE traces
    ADD INDEX IF NOT EXISTS event_time_range event_time TYPE minmax GRANULARITY 1;
ALTER TABLE verdicts
    ADD INDEX IF NOT EXISTS event_time_range event_time TYPE minmax GRANULARITY 1;

-- The current verdict on each trace. A judgement takes precedence over "card unknown", then a verdict
-- that considers the revocation of its card, then the newest. The order is that of the table's key,
-- so picking the first row of each trace is cheap. event_time and session_id are the same in all
-- verdicts on a trace: with them in LIMIT BY, a filter on them is applied before it, and with them in
-- ORDER BY, too, LIMIT BY needs no memory.
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
SETTINGS do_not_merge_across_partitions_select_final = 0;

-- One row for each warning of a current verdict.
CREATE OR REPLACE VIEW warnings AS
SELECT
    event_hour, tenant, agent_id, trace_id, digest, event_time, received_at, stream_sequence, session_id, card_id, verdict_id, recommended_action,
    item.1 AS type, item.2 AS description, item.3 AS trace_field
FROM current_verdicts
ARRAY JOIN arrayZip(warning_types, warning_descriptions, warning_fields) AS item;
