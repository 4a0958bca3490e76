-- Traces of a baseline that are still stored, the earliest first: those that it names, or those that its series learned it
-- from.
SELECT event_hour, [lower(hex(digest))] AS digests
FROM traces
PREWHERE tenant = {tenant:String} AND event_hour BETWEEN {from_hour:UInt32} AND {to_hour:UInt32} AND agent_id = {agent:String}
WHERE card_id = {card:String} AND digest IN
(
    SELECT trace_digest
    FROM drift_points
    PREWHERE tenant = {tenant:String} AND event_hour BETWEEN {from_hour:UInt32} AND {to_hour:UInt32} AND agent_id = {agent:String}
    WHERE empty({digests:Array(String)}) AND status = 'baseline' AND card_id = {card:String}
    UNION ALL
    SELECT toFixedString(unhex(arrayJoin({digests:Array(String)})), 32)
)
ORDER BY event_hour, digest
LIMIT 1 BY digest
LIMIT {limit:UInt64}
