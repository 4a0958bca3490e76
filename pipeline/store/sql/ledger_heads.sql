SELECT
    ledger AS agent_id,
    max(sequence) AS last_sequence,
    countIf(fault = '') AS entries,
    argMaxIf(seq, sequence, fault = '') AS last_seq,
    argMaxIf(hash, sequence, fault = '') AS last_hash
FROM ledger FINAL
WHERE tenant = {tenant:String}
  AND ledger != ''
  AND stream_created = fromUnixTimestamp64Nano({created:Int64}, 'UTC')
GROUP BY ledger
ORDER BY ledger
