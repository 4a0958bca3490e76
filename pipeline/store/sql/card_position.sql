SELECT argMax(revision, settled_at) AS revision,
       (SELECT uniqExact(card_id) FROM cards WHERE tenant = {tenant:String}) AS cards
FROM card_positions
WHERE tenant = {tenant:String} AND stream_created = fromUnixTimestamp64Nano({created:Int64}, 'UTC')
SETTINGS select_sequential_consistency = 1
