-- The current verdict on each of some traces: as in view current_verdicts.
SELECT trace_digest_hex AS judged_digest, status, verified, recommended_action, similarity_score, engine_version, profile, verified_at,
       violations.type AS violation_types, violations.severity AS violation_severities, arrayMap(d -> leftUTF8(d, 1000), violations.description) AS violation_descriptions, violations.trace_field AS violation_fields,
       findings.type AS finding_types, findings.severity AS finding_severities, arrayMap(d -> leftUTF8(d, 1000), findings.description) AS finding_descriptions, findings.trace_field AS finding_fields,
       warnings.type AS warning_types, arrayMap(d -> leftUTF8(d, 1000), warnings.description) AS warning_descriptions
FROM verdicts FINAL
PREWHERE tenant = {tenant:String} AND event_hour BETWEEN {from:UInt32} AND {to:UInt32} AND agent_id = {agent:String}
     AND trace_digest IN (SELECT toFixedString(unhex(arrayJoin({digests:Array(String)})), 32))
ORDER BY trace_digest, status = 'judged' DESC, revoked_at DESC, verified_at DESC
LIMIT 1 BY trace_digest
