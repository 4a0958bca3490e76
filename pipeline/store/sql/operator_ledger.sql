SELECT tenant, ledger, file, stream_created, sequence, seq, type, data, hash, at, fault
FROM ledger FINAL
WHERE tenant = {tenant:String} AND ledger = ''
ORDER BY file, seq, sequence
