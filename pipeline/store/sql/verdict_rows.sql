SELECT tenant, agent_id, trace_id, card_id, trace_digest, card_digest, engine_version, profile, revoked_at,
       verified_at, status, verified, recommended_action,
       arrayConcat(violations.type, violations.severity, violations.description, violations.trace_field) AS all_violations,
       arrayConcat(warnings.type, warnings.severity, warnings.description, warnings.trace_field) AS all_warnings,
       arrayConcat(findings.type, findings.severity, findings.description, findings.trace_field) AS all_findings,
       similarity_score, similarities, mean_similarity, trend, algorithm_version,
       arrayStringConcat(checks_performed, '\n') AS checks, absent_triggers, grounded_claims, inferred_claims, methodology
FROM verdicts FINAL
