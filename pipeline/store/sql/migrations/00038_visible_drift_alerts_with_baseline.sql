-- +goose Up
-- Drift alerts, each once.
CREATE OR REPLACE VIEW visible_drift_alerts AS
SELECT
    tenant, agent_id, alert_id_hex AS alert_id, alert_type, card_id, detection_timestamp, received_at,
    similarity_score, sustained_traces, threshold, drift_direction,
    arrayZip(specific_indicators.indicator, specific_indicators.baseline,
             specific_indicators.current, specific_indicators.description) AS specific_indicators,
    recommendation, trace_ids, engine_version, methodology, mode, baseline_id_hex AS baseline_id
FROM drift_alerts FINAL
SETTINGS do_not_merge_across_partitions_select_final = 0;
