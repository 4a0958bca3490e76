-- The current verdict on each of some traces: as in view current_verdicts. A hostile trace may have thousands of problems.
SELECT trace_digest_hex AS judged_digest, status, verified, recommended_action, similarity_score, engine_version, profile, verified_at,
       arraySlice(violations.type, 1, 30) AS violation_types, arraySlice(violations.severity, 1, 30) AS violation_severities, arrayMap(d -> leftUTF8(d, 1000), arraySlice(violations.description, 1, 30)) AS violation_descriptions,
       arrayMap(d -> leftUTF8(d, 600), arraySlice(violations.trace_field, 1, 30)) AS violation_fields,
       arraySlice(findings.type, 1, 30) AS finding_types, arraySlice(findings.severity, 1, 30) AS finding_severities, arrayMap(d -> leftUTF8(d, 1000), arraySlice(findings.description, 1, 30)) AS finding_descriptions,
       arrayMap(d -> leftUTF8(d, 600), arraySlice(findings.trace_field, 1, 30)) AS finding_fields,
       arraySlice(warnings.type, 1, 30) AS warning_types, arrayMap(d -> leftUTF8(d, 1000), arraySlice(warnings.description, 1, 30)) AS warning_descriptions,
       length(violations.type) + length(findings.type) AS all_problems, length(warnings.type) AS all_warnings
FROM verdicts FINAL
PREWHERE tenant = {tenant:String} AND event_hour BETWEEN {from:UInt32} AND {to:UInt32} AND agent_id = {agent:String}
     AND trace_digest IN (SELECT toFixedString(unhex(arrayJoin({digests:Array(String)})), 32))
ORDER BY trace_digest, status = 'judged' DESC, revoked_at DESC, verified_at DESC
LIMIT 1 BY trace_digest
