-- A newer engine measures a trace again; its point is the one that counts, of copies the one that arrived first. Late and conflicting traces are in no series.
SELECT intDiv(toUnixTimestamp(event_time) - {from:Int64}, {step:Int64}) AS step, count() AS traces, countIf(similarity IS NOT NULL) AS compared,
       ifNotFinite(ifNull(avg(similarity), 0), 0) AS mean, ifNull(min(similarity), 0) AS lowest, countIf(similarity < threshold) AS low,
       countIf(status = 'drift') AS drifting, countIf(status = 'baseline') AS learning, max(threshold) AS limit_below
FROM
(
    SELECT event_time, similarity, threshold, status
    FROM drift_points
    PREWHERE tenant = {tenant:String} AND event_hour BETWEEN {from_hour:UInt32} AND {to_hour:UInt32} AND agent_id = {agent:String}
    WHERE status NOT IN ('late', 'conflict') AND ({card:String} = '' OR card_id = {card:String})
      AND toUnixTimestamp(event_time) >= {from:Int64} AND toUnixTimestamp(event_time) < {to:Int64}
    ORDER BY length(engine_version) DESC, engine_version DESC, arrival DESC
    LIMIT 1 BY card_id, trace_digest
)
GROUP BY step
ORDER BY step
LIMIT 1000
