SELECT tenant, question, session_id, number, min(event_time) AS earliest
FROM
(
%s)
GROUP BY tenant, question, session_id, number
ORDER BY question, number
LIMIT {limit:UInt64} BY question
