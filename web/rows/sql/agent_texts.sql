-- What some traces say in their bytes. The length is that of the whole text; a sketch of it reads no more than its
-- beginning. The benefit is as the record has it: schema and drift read numbers alone.
SELECT intDiv(toUnixTimestamp(event_time) - {from:Int64}, {step:Int64}) AS step, session_id, action_type IN ('execute', 'escalate') AS acts,
       lengthUTF8(selection_reasoning) AS characters, leftUTF8(selection_reasoning, 1024) AS beginning,
       JSONExtractRaw(arrayFirst(a -> JSONExtractString(a, 'option_id') = selected, alternatives_considered), 'scoring_factors', 'principal_benefit') AS benefit
FROM traces
PREWHERE tenant = {tenant:String} AND event_hour IN {hours:Array(UInt32)} AND agent_id = {agent:String}
     AND digest IN (SELECT toFixedString(unhex(arrayJoin({digests:Array(String)})), 32))
ORDER BY event_time, digest
LIMIT 1 BY digest
