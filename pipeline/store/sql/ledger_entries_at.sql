SELECT tenant, ledger, sequence, seq, type, lower(hex(SHA256(data))) AS data_sha256, hash
FROM ledger FINAL
WHERE tenant = {tenant:String}
  AND fault = ''
  AND (ledger, seq) IN
  (
      SELECT q.1, q.2
      FROM (SELECT arrayJoin(arrayZip({ledgers:Array(String)}, {seqs:Array(UInt64)})) AS q)
  )
ORDER BY stream_created, sequence
