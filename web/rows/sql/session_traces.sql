-- A page of a session's traces in the order of their own time. The inner query chooses them without their bytes.
-- No result has the name of an ALIAS column: on shards there would be two expressions of one name, which is an error.
SELECT event_time, received_at, stream_sequence, trace_id, digest_hex AS trace_digest, card_id, action_type, leftUTF8(action_name, 500) AS action_name, action_category,
       leftUTF8(concat(target_type, if(target_type != '' AND target_identifier != '', ' ', ''), target_identifier), 300) AS target,
       leftUTF8(parameters, 1000) AS parameters_text, indexOf(option_ids, selected) AS chosen,
       arrayMap(v -> leftUTF8(v, 200), arraySlice(values_applied, 1, 30)) AS some_values, length(values_applied) AS all_values, confidence,
       leftUTF8(selection_reasoning, 4000) AS reasoning,
       arrayMap(x -> leftUTF8(x, 200), arraySlice(option_ids, 1, 30)) AS options, arrayMap(x -> leftUTF8(x, 600), arraySlice(option_descriptions, 1, 30)) AS descriptions,
       arraySlice(option_scores, 1, 30) AS scores, arrayMap(x -> leftUTF8(arrayStringConcat(x, ', '), 300), arraySlice(option_flags, 1, 30)) AS flags,
       length(option_ids) AS all_options,
       has_escalation, escalation_required, leftUTF8(escalation_status, 200) AS escalation_status, leftUTF8(escalation_reason, 2000) AS why_escalated, leftUTF8(response_decision, 200) AS response,
       arrayMap(x -> leftUTF8(x, 300), arraySlice(triggers, 1, 30)) AS trigger_texts, arraySlice(triggers_matched, 1, 30) AS matched, length(triggers) AS all_triggers,
       has_execution, leftUTF8(tool_name, 500) AS tool_name, cost_cents AS cents, leftUTF8(execution_error, 1000) AS fault, length(raw) AS bytes
FROM traces FINAL
PREWHERE tenant = {tenant:String} AND event_hour BETWEEN {from:UInt32} AND {to:UInt32} AND agent_id = {agent:String} AND session_id = {session:String} AND digest IN
(
    SELECT digest
    FROM traces FINAL
    PREWHERE tenant = {tenant:String} AND event_hour BETWEEN {from:UInt32} AND {to:UInt32} AND agent_id = {agent:String} AND session_id = {session:String}
    WHERE (toUnixTimestamp64Nano(event_time), digest_hex) > ({after_time:Int64}, {after_digest:String})
    ORDER BY event_time, digest
    LIMIT {limit:UInt64}
)
ORDER BY event_time, digest
SETTINGS use_skip_indexes_if_final_exact_mode = 0 -- copies of a record have the same session
