-- What the measures of AAP section 8.5 count: the events, and the decisions that could have been one; in each step of
-- time, or over the traces of a baseline: those that it names, or those that its series learned it from. As in a
-- judgement, an entry "name: description" of a card also counts as its name, and every part of an action name such as
-- "search, book" must be listed. A trace without a stored card is not measured by it. "tools" are the action names of
-- the baseline, as drift keeps them, and "values" those that are counted where the card declares them.
SELECT step, count() AS traces, countIf(action_type = 'deny') AS denials, countIf(escalation_required) AS escalations,
       countIf(outside) AS outside_bounds, countIf(outside AND NOT escalation_required) AS unescalated,
       countIf(known) AS with_card, countIf(known AND arrayExists(v -> NOT has(declared, v), applied)) AS undeclared,
       countIf(known AND action != '' AND NOT has({tools:Array(String)}, tool) AND NOT has(named, action)) AS new_tools,
       countIf(known AND action_type != 'deny') AS deciding,
       sumForEach(arrayMap(v -> toUInt64(known AND action_type != 'deny' AND has(declared, v) AND has(applied, v)), {values:Array(String)})) AS applied_values,
       countIf(has_execution AND acts) AS acting, countIf(has_execution AND acts AND execution_error != '') AS errors,
       countIf(has_execution) AS executions, toFloat64(sumIf(cost_cents, has_execution)) AS cost,
       countIf(confidence IS NOT NULL) AS confident, ifNull(sum(confidence), 0) AS confidence_sum
FROM
(
    SELECT step, action_type, action_type IN ('execute', 'escalate') AS acts, escalation_required, execution_error, has_execution, cost_cents, confidence, known, declared, applied, action,
           concat('action_name:', action) AS long_tool, if(length(long_tool) > 128, concat('action_name:sha256:', lower(hex(SHA256(long_tool)))), long_tool) AS tool,
           arrayConcat(bounded, named_elsewhere) AS named,
           known AND action_type != 'deny' AND NOT has(bounded, action) AND NOT arrayAll(part -> has(bounded, trimBoth(part)), splitByChar(',', action)) AS outside
    FROM
    (
        SELECT if({baseline:UInt8}, toInt64(0), intDiv(toUnixTimestamp(event_time) - {from:Int64}, {step:Int64})) AS step, card_id,
               action_type, toString(action_name) AS action, escalation_required, execution_error, has_execution, cost_cents, confidence,
               arrayMap(v -> toString(v), values_applied) AS applied
        FROM traces
        PREWHERE tenant = {tenant:String} AND event_hour BETWEEN {from_hour:UInt32} AND {to_hour:UInt32} AND agent_id = {agent:String}
        WHERE ({card:String} = '' OR card_id = {card:String})
          AND ({baseline:UInt8} OR toUnixTimestamp(event_time) >= {from:Int64} AND toUnixTimestamp(event_time) < {to:Int64})
          AND (NOT {baseline:UInt8} OR digest IN
          (
              SELECT trace_digest
              FROM drift_points
              PREWHERE tenant = {tenant:String} AND event_hour BETWEEN {from_hour:UInt32} AND {to_hour:UInt32} AND agent_id = {agent:String}
              WHERE {baseline:UInt8} AND empty({digests:Array(String)}) AND status = 'baseline' AND card_id = {card:String}
              UNION ALL
              SELECT toFixedString(unhex(arrayJoin({digests:Array(String)})), 32)
          ))
        LIMIT 1 BY digest
    ) AS t
    LEFT JOIN
    (
        SELECT card_id, true AS known, arrayMap(v -> toString(v), declared_values) AS declared,
               arrayMap(v -> toString(v), arrayConcat(bounded_actions, arrayMap(entry -> trimBoth(splitByChar(':', entry)[1]), bounded_actions))) AS bounded,
               arrayMap(v -> toString(v), arrayConcat(forbidden_actions, arrayMap(entry -> trimBoth(splitByChar(':', entry)[1]), forbidden_actions),
                   arrayFlatten(arrayMap(c -> arrayFilter((part, i) -> i % 2 = 0, splitByChar('"', c), arrayEnumerate(splitByChar('"', c))), escalation_triggers.condition)))) AS named_elsewhere
        FROM cards FINAL
        WHERE tenant = {tenant:String} AND agent_id = {agent:String}
        ORDER BY registered_at
        LIMIT 1 BY card_id
    ) AS c ON t.card_id = c.card_id
)
GROUP BY step
ORDER BY step
LIMIT 1000
SETTINGS join_use_nulls = 0
