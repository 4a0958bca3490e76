-- Ten traces of each step at most, of its latest hour with traces: those with the lowest digests, which say nothing of
-- what a trace is. So the records of a step are in one place of the table, and a long time costs as much as a short one.
SELECT event_hour, arrayMap(d -> lower(hex(d)), lowest) AS digests
FROM
(
    SELECT intDiv(toUnixTimestamp(event_time) - {from:Int64}, {step:Int64}) AS step, event_hour, groupArraySorted(10)(digest) AS lowest
    FROM traces
    PREWHERE tenant = {tenant:String} AND event_hour BETWEEN {from_hour:UInt32} AND {to_hour:UInt32} AND agent_id = {agent:String}
    WHERE ({card:String} = '' OR card_id = {card:String}) AND toUnixTimestamp(event_time) >= {from:Int64} AND toUnixTimestamp(event_time) < {to:Int64}
    GROUP BY step, event_hour
)
ORDER BY step, event_hour DESC
LIMIT 1 BY step
LIMIT 1000
