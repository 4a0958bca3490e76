-- +goose Up
-- Drift alerts, each once, as its newest event says. A newer engine gives an alert another id; of two alerts
-- that the same trace opened, that of the newest engine is shown. The digests become text in the outer query:
-- on shards, ClickHouse gives the values of a query with a window function to the wrong columns if the query
-- also reads an ALIAS column such as baseline_id_hex.
CREATE OR REPLACE VIEW visible_drift_alerts AS
SELECT
    tenant, agent_id, lower(hex(id)) AS alert_id, alert_type, card_id, detection_timestamp, received_at,
    similarity_score, sustained_traces, threshold, drift_direction, indicators AS specific_indicators,
    recommendation, trace_ids, engine_version, methodology, mode, lower(hex(baseline)) AS baseline_id,
    state, toUInt32(greatest(event, 1)) AS revision, opened_at, closed_at, last_trace_id, count, strength, measures, summary
FROM
(
    SELECT
        tenant, agent_id, alert_id AS id, alert_type, card_id, detection_timestamp, received_at,
        similarity_score, sustained_traces, threshold, drift_direction,
        arrayZip(specific_indicators.indicator, specific_indicators.baseline,
                 specific_indicators.current, specific_indicators.description) AS indicators,
        recommendation, trace_ids, engine_version, methodology, mode, baseline_id AS baseline,
        state, revision AS event, opened_at, closed_at, last_trace_id, count, strength, measures, summary,
        max(revision) OVER (PARTITION BY tenant, agent_id, alert_id) AS newest,
        first_value(last_trace_id) OVER (PARTITION BY tenant, agent_id, alert_id ORDER BY revision) AS opened_by
    FROM drift_alerts FINAL
)
WHERE event = newest
ORDER BY tenant, agent_id, card_id, opened_by, length(engine_version) DESC, engine_version DESC
LIMIT 1 BY tenant, agent_id, card_id, opened_by
SETTINGS do_not_merge_across_partitions_select_final = 0;
