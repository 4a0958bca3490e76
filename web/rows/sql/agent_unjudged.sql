SELECT count() AS traces
FROM verdicts
PREWHERE tenant = {tenant:String} AND event_hour BETWEEN {from_hour:UInt32} AND {to_hour:UInt32} AND agent_id = {agent:String} AND status = 'card_unknown'
WHERE toUnixTimestamp(event_time) >= {from:Int64} AND toUnixTimestamp(event_time) < {to:Int64}
  AND card_id GLOBAL NOT IN (SELECT card_id FROM cards WHERE tenant = {tenant:String})
