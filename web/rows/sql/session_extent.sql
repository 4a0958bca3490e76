-- Copies of a trace count once. "later" are the traces that arrived after those of the sealed parts.
SELECT count() AS traces, min(event_hour) AS first_hour, max(event_hour) AS last_hour, min(event_time) AS first_event, max(event_time) AS last_event,
       max(session_end) AS ended, sum(cost_cents) AS cents, countIf(stream_sequence > reached) AS later
FROM
(
    SELECT event_hour, event_time, session_end, cost_cents, stream_sequence,
           (SELECT max(last_sequence) FROM bundles WHERE tenant = {tenant:String} AND agent_id = {agent:String} AND session_id = {session:String}) AS reached
    FROM traces
    PREWHERE tenant = {tenant:String} AND agent_id = {agent:String} AND session_id = {session:String}
    ORDER BY stream_sequence
    LIMIT 1 BY digest
)
