-- The newest valid entry is that of the present stream if this has one, else that of the newest earlier stream.
SELECT
    ledger AS agent_id,
    maxIf(sequence, present) AS last_sequence,
    countIf(fault = '') AS entries,
    argMaxIf(seq, (present, stream_created, sequence), fault = '') AS last_seq,
    argMaxIf(hash, (present, stream_created, sequence), fault = '') AS last_hash
FROM
(
    SELECT ledger, stream_created, sequence, seq, hash, fault,
        stream_created = fromUnixTimestamp64Nano({created:Int64}, 'UTC') AS present
    FROM ledger FINAL
    WHERE tenant = {tenant:String} AND ledger != ''
)
GROUP BY ledger
ORDER BY ledger
