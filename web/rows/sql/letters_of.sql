-- As store.MarkedLetters, of one digest and the agents that the reader may see.
SELECT l.tenant AS tenant, l.event_hour AS event_hour, l.stage AS stage, l.origin_created AS origin_created,
       l.origin_sequence AS origin_sequence, l.digest AS digest, l.received_at AS received_at, l.retain_until AS retain_until,
       l.subject AS subject, l.agent_id AS agent_id, l.trace_id AS trace_id, l.reason AS reason,
       l.pointers AS `faults.pointer`, l.messages AS `faults.message`, l.raw AS raw,
       m.mark AS mark, m.at AS marked_at, m.by AS marked_by, m.note AS note
FROM
(
    SELECT tenant, event_hour, stage, origin_created, origin_sequence, digest, received_at, retain_until, subject, agent_id,
           trace_id, reason, faults.pointer AS pointers, faults.message AS messages,
           if({raw:Bool}, raw, '') AS raw
    FROM dead_letters FINAL
    WHERE tenant = {tenant:String} AND digest = toFixedString(unhex({sha256:String}), 32)
      AND $agents
) AS l
LEFT JOIN
(
    SELECT digest, argMax(mark, marked_at) AS mark, argMax(marked_by, marked_at) AS by, argMax(note, marked_at) AS note,
           max(marked_at) AS at
    FROM dead_letter_marks FINAL
    WHERE tenant = {tenant:String} AND digest = toFixedString(unhex({sha256:String}), 32)
    GROUP BY digest
) AS m ON l.digest = m.digest
ORDER BY l.received_at, l.digest
LIMIT 20
