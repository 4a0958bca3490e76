-- How many verdicts were made after the place that the tail has reached, and how many are stored by now of those before it.
SELECT countIf(toUnixTimestamp64Nano(verified_at) > {after:Int64}) AS fresh, countIf(toUnixTimestamp64Nano(verified_at) <= {after:Int64}) AS before
FROM verdicts
PREWHERE received_at >= toDateTime64({since:Int64}, 9, 'UTC')
WHERE tenant = {tenant:String}
  AND $agents
  AND ({agent:String} = '' OR agent_id = {agent:String})
  AND ({action:String} = '' OR recommended_action = {action:String}) AND (NOT {problems:UInt8} OR notEmpty(violations.type) OR notEmpty(findings.type))
  AND toUnixTimestamp64Nano(verified_at) > {base:Int64} AND toUnixTimestamp64Nano(verified_at) <= {until:Int64}
