-- +goose Up
-- One verdict a trace: a judgement before "card unknown", of these the one that
-- knows the revocation of its card, of these the newest. Sorted as the table is,
-- so that picking the first of each trace costs little. With the claims by their
-- tags and the methodology of a changed threshold.
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
ORDER BY event_hour, tenant, agent_id, trace_id, trace_digest, status = 'judged' DESC, revoked_at DESC, verified_at DESC
LIMIT 1 BY event_hour, tenant, agent_id, trace_id, trace_digest
SETTINGS do_not_merge_across_partitions_select_final = 0;
