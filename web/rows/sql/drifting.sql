SELECT agent_id, alert_id, card_id, state, drift_direction, opened_at, closed_at, similarity_score, threshold, count, summary, measures, last_trace_id,
       count() OVER () AS all_open
FROM visible_drift_alerts
WHERE tenant = {tenant:String} AND state != 'closed'
  AND $agents
ORDER BY opened_at DESC, agent_id
LIMIT {limit:UInt64}
