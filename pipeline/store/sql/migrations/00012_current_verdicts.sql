-- +goose Up
-- One verdict a trace: the newest, and a judgement before "card unknown".
CREATE OR REPLACE VIEW current_verdicts AS
SELECT
    event_hour, tenant, agent_id, trace_id, lower(hex(trace_digest)) AS digest,
    any(verdicts.event_time) AS event_time,
    any(verdicts.received_at) AS received_at,
    any(verdicts.stream_sequence) AS stream_sequence,
    any(verdicts.session_id) AS session_id,
    any(verdicts.card_id) AS card_id,
    argMax(verdicts.verdict_id, (verdicts.status = 'judged', verdicts.verified_at)) AS verdict_id,
    argMax(verdicts.status, (verdicts.status = 'judged', verdicts.verified_at)) AS status,
    argMax(verdicts.verified, (verdicts.status = 'judged', verdicts.verified_at)) AS verified,
    argMax(verdicts.recommended_action, (verdicts.status = 'judged', verdicts.verified_at)) AS recommended_action,
    argMax(verdicts.violations.type, (verdicts.status = 'judged', verdicts.verified_at)) AS violation_types,
    argMax(verdicts.violations.severity, (verdicts.status = 'judged', verdicts.verified_at)) AS violation_severities,
    argMax(verdicts.violations.description, (verdicts.status = 'judged', verdicts.verified_at)) AS violation_descriptions,
    argMax(verdicts.violations.trace_field, (verdicts.status = 'judged', verdicts.verified_at)) AS violation_fields,
    argMax(verdicts.warnings.type, (verdicts.status = 'judged', verdicts.verified_at)) AS warning_types,
    argMax(verdicts.warnings.description, (verdicts.status = 'judged', verdicts.verified_at)) AS warning_descriptions,
    argMax(verdicts.warnings.trace_field, (verdicts.status = 'judged', verdicts.verified_at)) AS warning_fields,
    argMax(verdicts.findings.type, (verdicts.status = 'judged', verdicts.verified_at)) AS finding_types,
    argMax(verdicts.findings.severity, (verdicts.status = 'judged', verdicts.verified_at)) AS finding_severities,
    argMax(verdicts.findings.description, (verdicts.status = 'judged', verdicts.verified_at)) AS finding_descriptions,
    argMax(verdicts.findings.trace_field, (verdicts.status = 'judged', verdicts.verified_at)) AS finding_fields,
    argMax(verdicts.similarity_score, (verdicts.status = 'judged', verdicts.verified_at)) AS similarity_score,
    argMax(verdicts.engine_version, (verdicts.status = 'judged', verdicts.verified_at)) AS engine_version,
    argMax(verdicts.profile, (verdicts.status = 'judged', verdicts.verified_at)) AS profile,
    argMax(verdicts.card_digest_hex, (verdicts.status = 'judged', verdicts.verified_at)) AS card_digest,
    max((verdicts.status = 'judged', verdicts.verified_at)).2 AS verified_at,
    count() AS verdicts
FROM verdicts FINAL
GROUP BY event_hour, tenant, agent_id, trace_id, trace_digest
SETTINGS do_not_merge_across_partitions_select_final = 0;
