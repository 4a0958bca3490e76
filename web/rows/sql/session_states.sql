-- The state of a few sessions. As in view session_summary, a session is sealed if its bundles have all of its stored
-- traces: as many, and none above the highest place in the broker's stream that a bundle reaches.
SELECT agent_id, session_id, sum(stored) AS traces, sum(files) AS bundles, max(said) AS verdict_rank,
       multiIf(max(is_held), 'held', bundles > 0 AND traces <= sum(sealed) AND max(at) <= max(reached), 'sealed', 'open') AS state, max(why) AS reason
FROM
(
    SELECT agent_id, session_id, uniqExact(digest) AS stored, max(stream_sequence) AS at, toUInt64(0) AS files, toUInt64(0) AS sealed, toUInt64(0) AS reached, false AS is_held, '' AS why, toUInt8(0) AS said
    FROM traces
    PREWHERE tenant = {tenant:String} AND session_id IN {sessions:Array(String)} AND agent_id IN {agents:Array(String)}
    GROUP BY agent_id, session_id
    UNION ALL
    SELECT agent_id, session_id, 0, 0, count(), sum(trace_count), max(last_sequence), false, '', 0
    FROM bundles FINAL
    PREWHERE tenant = {tenant:String} AND session_id IN {sessions:Array(String)} AND agent_id IN {agents:Array(String)}
    GROUP BY agent_id, session_id
    UNION ALL
    SELECT agent_id, session_id, 0, 0, 0, 0, 0, status = 'held', if(status = 'held', reason, ''), 0
    FROM sessions FINAL
    PREWHERE tenant = {tenant:String} AND session_id IN {sessions:Array(String)} AND agent_id IN {agents:Array(String)}
    UNION ALL
    SELECT agent_id, session_id, 0, 0, 0, 0, 0, false, '', max(multiIf(recommended_action = 'deny', 3, recommended_action = 'review', 2, 1))
    FROM session_verdicts FINAL
    PREWHERE tenant = {tenant:String} AND session_id IN {sessions:Array(String)} AND agent_id IN {agents:Array(String)}
    GROUP BY agent_id, session_id
)
GROUP BY agent_id, session_id
