-- +goose Up
-- An alert of drift opens, may be updated and closes. The table keeps each of these events, a revision of
-- the alert. A row of before this file is the only event of its alert: it has revision 0, which stands
-- for 1. A column that becomes part of the sort key cannot have another default.
ALTER TABLE drift_alerts
    ADD COLUMN IF NOT EXISTS revision UInt32,
    ADD COLUMN IF NOT EXISTS state LowCardinality(String) DEFAULT 'opened',
    ADD COLUMN IF NOT EXISTS opened_at DateTime64(9, 'UTC') DEFAULT detection_timestamp CODEC(Delta, ZSTD(1)),
    ADD COLUMN IF NOT EXISTS closed_at Nullable(DateTime64(9, 'UTC')),
    ADD COLUMN IF NOT EXISTS last_trace_id String DEFAULT trace_ids[-1] CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS count UInt32 DEFAULT length(trace_ids),
    ADD COLUMN IF NOT EXISTS strength Float64,
    ADD COLUMN IF NOT EXISTS measures Array(LowCardinality(String)),
    ADD COLUMN IF NOT EXISTS summary String CODEC(ZSTD(1)),
    MODIFY ORDER BY (event_hour, tenant, agent_id, alert_id, revision);

-- Drift alerts, each once, as its newest event says. A newer engine gives an alert another id; of two alerts
-- that the same trace opened, that of the newest engine is shown.
CREATE OR REPLACE VIEW visible_drift_alerts AS
SELECT
    tenant, agent_id, lower(hex(id)) AS alert_id, alert_type, card_id, detection_timestamp, received_at,
    similarity_score, sustained_traces, threshold, drift_direction, indicators AS specific_indicators,
    recommendation, trace_ids, engine_version, methodology, mode, baseline_id,
    state, toUInt32(greatest(event, 1)) AS revision, opened_at, closed_at, last_trace_id, count, strength, measures, summary
FROM
(
    SELECT
        tenant, agent_id, alert_id AS id, alert_type, card_id, detection_timestamp, received_at,
        similarity_score, sustained_traces, threshold, drift_direction,
        arrayZip(specific_indicators.indicator, specific_indicators.baseline,
                 specific_indicators.current, specific_indicators.description) AS indicators,
        recommendation, trace_ids, engine_version, methodology, mode, baseline_id_hex AS baseline_id,
        state, revision AS event, opened_at, closed_at, last_trace_id, count, strength, measures, summary,
        max(revision) OVER (PARTITION BY tenant, agent_id, alert_id) AS newest,
        first_value(last_trace_id) OVER (PARTITION BY tenant, agent_id, alert_id ORDER BY revision) AS opened_by
    FROM drift_alerts FINAL
)
WHERE event = newest
ORDER BY tenant, agent_id, card_id, opened_by, length(engine_version) DESC, engine_version DESC
LIMIT 1 BY tenant, agent_id, card_id, opened_by
SETTINGS do_not_merge_across_partitions_select_final = 0;
