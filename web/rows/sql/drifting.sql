SELECT agent_id, alert_id, card_id, state, drift_direction, opened_at, closed_at, similarity_score, threshold, count, summary, measures, last_trace_id,
       count() OVER () AS all_open
FROM visible_drift_alerts
WHERE tenant = {tenant:String} AND state != 'closed'
  AND ({every:UInt8} OR has({agents:Array(String)}, agent_id) OR arrayExists(prefix -> startsWith(agent_id, prefix), {prefixes:Array(String)}))
ORDER BY opened_at DESC, agent_id
LIMIT {limit:UInt64}
