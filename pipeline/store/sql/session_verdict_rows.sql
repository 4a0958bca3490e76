SELECT tenant, agent_id, session_id, part, engine_version, profile, verified_at, last_part, verified, recommended_action,
       traces, verified_traces, unknown_cards, violation_counts, trace_findings, finding_counts,
       findings.type, findings.severity, findings.description, findings.trace_id, findings.trace_field,
       mean_similarity, min_similarity, trend, algorithm_version, checks_performed, unchecked
FROM session_verdicts FINAL
