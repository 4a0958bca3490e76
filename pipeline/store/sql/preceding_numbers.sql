SELECT tenant, question, argMax(session_id, number) AS last_session, max(number) AS last_number, argMax(event_time, number) AS last_time
FROM
(
%s)
WHERE toUnixTimestamp64Nano(event_time) <= until AND session_id != own_session
GROUP BY tenant, question
ORDER BY question
