-- The newest letters. Each has the newest mark on its bytes; one that is older than the letter belongs to an earlier letter.
SELECT digest_hex, received_at, stage, reason, agent_id, subject_name, trace, pointer, fault, all_faults, bytes, place,
       if(handled, m.mark, 'open') AS state, if(handled, m.by, '') AS marked_by, m.mark != '' AND m.at >= received_at AS handled
FROM
(
    SELECT digest, lower(hex(digest)) AS digest_hex, received_at, stage, reason, agent_id, leftUTF8(subject, 300) AS subject_name, leftUTF8(trace_id, 600) AS trace,
           leftUTF8(faults.pointer[1], 300) AS pointer, leftUTF8(faults.message[1], 500) AS fault, length(faults.pointer) AS all_faults,
           if({raw:Bool}, length(raw), 0) AS bytes, cityHash64(digest, stage, origin_created, origin_sequence) AS place
    FROM dead_letters FINAL
    WHERE tenant = {tenant:String}
      AND $agents
      AND ({agent:String} = '' OR agent_id = {agent:String}) AND ({reason:String} = '' OR reason = {reason:String})
      AND toUnixTimestamp64Nano(received_at) <= {after_time:Int64}
) AS l
LEFT JOIN
(
    SELECT digest, argMax(mark, marked_at) AS mark, argMax(marked_by, marked_at) AS by, max(marked_at) AS at
    FROM dead_letter_marks FINAL
    WHERE tenant = {tenant:String}
    GROUP BY digest
) AS m ON l.digest = m.digest
WHERE (toUnixTimestamp64Nano(received_at), place) < ({after_time:Int64}, {after_place:UInt64}) AND ({all:UInt8} OR NOT handled)
ORDER BY received_at DESC, place DESC
LIMIT {limit:UInt64}
SETTINGS join_use_nulls = 0
