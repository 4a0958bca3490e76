SELECT count() AS traces, min(event_time) AS first, max(event_time) AS last, max(received_at) AS received
FROM traces
PREWHERE tenant = {tenant:String} AND event_hour BETWEEN {from_hour:UInt32} AND {to_hour:UInt32} AND agent_id = {agent:String}
WHERE ({card:String} = '' OR card_id = {card:String}) AND toUnixTimestamp(event_time) >= {from:Int64} AND toUnixTimestamp(event_time) < {to:Int64}
