SELECT agent_id, alert_id, card_id, state, drift_direction, opened_at, closed_at, similarity_score, threshold, count, summary, measures, last_trace_id,
       countIf(state != 'closed') OVER () AS all_open, count() OVER () AS all_alerts
FROM visible_drift_alerts
WHERE tenant = {tenant:String} AND agent_id = {agent:String}
ORDER BY state != 'closed' DESC, opened_at DESC
LIMIT {limit:UInt64}
