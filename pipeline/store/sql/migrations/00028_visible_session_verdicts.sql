-- +goose Up
-- Verdicts on sessions, each once.
CREATE OR REPLACE VIEW visible_session_verdicts AS
SELECT
    tenant, agent_id, session_id, part, last_part, verified, recommended_action, traces, verified_traces, unknown_cards,
    violation_counts, trace_findings, finding_counts,
    findings.type AS finding_types, findings.severity AS finding_severities, findings.description AS finding_descriptions,
    findings.trace_id AS finding_traces, findings.trace_field AS finding_fields,
    mean_similarity, min_similarity, trend, algorithm_version, engine_version, profile, checks_performed, unchecked, verified_at
FROM session_verdicts FINAL
SETTINGS do_not_merge_across_partitions_select_final = 0;
