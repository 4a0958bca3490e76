-- The newest of the verdicts that were made within a time.
SELECT verified_at, agent_id, session_id, trace_id, if(status = 'judged', toString(recommended_action), 'card unknown') AS said,
       arrayMap(t -> toString(t), arraySlice(arrayConcat(violations.type, findings.type), 1, 5)) AS types, length(violations.type) + length(findings.type) AS all_types
FROM verdicts
PREWHERE received_at >= toDateTime64({since:Int64}, 9, 'UTC')
WHERE tenant = {tenant:String}
  AND $agents
  AND ({agent:String} = '' OR agent_id = {agent:String})
  AND ({action:String} = '' OR recommended_action = {action:String}) AND (NOT {problems:UInt8} OR notEmpty(violations.type) OR notEmpty(findings.type))
  AND toUnixTimestamp64Nano(verified_at) > {after:Int64} AND toUnixTimestamp64Nano(verified_at) <= {until:Int64}
ORDER BY verified_at DESC, trace_digest
LIMIT {limit:UInt64}
