SELECT tenant, event_hour, agent_id, alert_id, alert_type, card_id, detection_timestamp, received_at, retain_until,
       similarity_score, sustained_traces, threshold, drift_direction,
       specific_indicators.indicator, specific_indicators.baseline, specific_indicators.current, specific_indicators.description,
       recommendation, trace_ids, engine_version, methodology, mode, baseline_id,
       revision, state, opened_at, closed_at, last_trace_id, count, strength, measures, summary
FROM drift_alerts FINAL
WHERE tenant = {tenant:String}
  AND ({agent:String} = '' OR agent_id = {agent:String})
  AND ({card:String} = '' OR card_id = {card:String})
ORDER BY alert_id, revision DESC
LIMIT {events:UInt64} BY alert_id
