-- The newest parts of a session, each with the verdict of the newest engine on it.
-- The digest is not sha256_hex: on shards, an ALIAS column and a window function in one query give values to the wrong columns.
SELECT b.part AS part, b.last_part AS last_part, b.sha256 AS sha256, b.path AS path, b.bytes AS bytes, b.action_count AS rows, b.trace_count AS traces,
       b.redactions AS redactions, b.chain_hash AS chain_hash, b.previous_sha256 AS previous_sha256, b.key_id AS key_id, b.reason AS reason,
       b.exported_at AS exported_at, b.all_parts AS all_parts, b.all_traces AS all_traces,
       v.recommended_action AS recommended_action, v.verified AS verified, v.verified_traces AS verified_traces, v.unknown_cards AS unknown_cards,
       v.finding_types AS types, v.finding_severities AS severities, v.finding_descriptions AS descriptions, v.finding_traces AS of_traces, v.all_findings AS all_findings, v.not_checked AS not_checked
FROM
(
    SELECT part, last_part, lower(hex(bundles.sha256)) AS sha256, path, bytes, action_count, trace_count, redactions, chain_hash, previous_sha256, key_id, reason, exported_at,
           count() OVER () AS all_parts, sum(trace_count) OVER () AS all_traces
    FROM bundles FINAL
    WHERE tenant = {tenant:String} AND agent_id = {agent:String} AND session_id = {session:String}
    ORDER BY part DESC, exported_at DESC
    LIMIT {limit:UInt64}
) AS b
LEFT JOIN
(
    SELECT part, verified, recommended_action, verified_traces, unknown_cards, arrayMap(c -> leftUTF8(c, 300), arraySlice(unchecked, 1, 30)) AS not_checked,
           arraySlice(findings.type, 1, 30) AS finding_types, arraySlice(findings.severity, 1, 30) AS finding_severities,
           arrayMap(d -> leftUTF8(d, 1000), arraySlice(findings.description, 1, 30)) AS finding_descriptions, arraySlice(findings.trace_id, 1, 30) AS finding_traces,
           length(findings.type) AS all_findings
    FROM session_verdicts FINAL
    WHERE tenant = {tenant:String} AND agent_id = {agent:String} AND session_id = {session:String}
    ORDER BY part, verified_at DESC
    LIMIT 1 BY part
) AS v ON b.part = v.part
ORDER BY part DESC
SETTINGS join_use_nulls = 0
