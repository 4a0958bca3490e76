-- +goose Up
-- Drift alerts (AAP section 8.4): one for each streak. A replay gives an alert the same id.
CREATE TABLE IF NOT EXISTS drift_alerts
(
    event_hour          UInt32,
    tenant              LowCardinality(String),
    agent_id            String CODEC(ZSTD(1)),
    alert_id            FixedString(32) CODEC(NONE),

    alert_type          LowCardinality(String),
    card_id             String CODEC(ZSTD(1)),
    detection_timestamp DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    received_at         DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    arrival             UInt64 MATERIALIZED bitNot(toUInt64(toUnixTimestamp64Nano(received_at))),
    retain_until        DateTime('UTC'),
    similarity_score    Float64,
    sustained_traces    UInt32,
    threshold           Float64,
    drift_direction     LowCardinality(String),
    specific_indicators Nested(indicator LowCardinality(String), baseline Float64, current Float64, description String),
    recommendation      String CODEC(ZSTD(1)),
    trace_ids           Array(String) CODEC(ZSTD(1)),
    engine_version      LowCardinality(String),
    methodology         LowCardinality(String),

    alert_id_hex        String ALIAS lower(hex(alert_id)),

    mode                LowCardinality(String),
    baseline_id         FixedString(32),
    baseline_id_hex     String ALIAS lower(hex(baseline_id)),

    INDEX agent_id_bloom agent_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX trace_ids_bloom trace_ids TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = ReplacingMergeTree(arrival)
PARTITION BY toYYYYMM(received_at)
ORDER BY (event_hour, tenant, agent_id, alert_id)
TTL retain_until
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;
