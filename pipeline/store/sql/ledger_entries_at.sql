SELECT tenant, ledger, sequence, seq, type, lower(hex(SHA256(data))) AS data_sha256, hash
FROM ledger FINAL
WHERE tenant = {tenant:String}
  AND stream_created = fromUnixTimestamp64Nano({created:Int64}, 'UTC')
  AND fault = ''
  AND (ledger, seq) IN
  (
      SELECT q.1, q.2
      FROM (SELECT arrayJoin(arrayZip({ledgers:Array(String)}, {seqs:Array(UInt64)})) AS q)
  )
ORDER BY sequence
