SELECT max(sequence) AS reached
FROM ledger
WHERE tenant = {tenant:String} AND ledger = '' AND stream_created = fromUnixTimestamp64Nano({created:Int64}, 'UTC')
