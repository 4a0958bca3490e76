-- +goose Up
-- The baselines that drift compared traces with. Points and alerts name them. A baseline is never
-- changed or removed.
CREATE TABLE IF NOT EXISTS drift_baselines
(
    tenant          LowCardinality(String),
    agent_id        String CODEC(ZSTD(1)),
    card_id         String CODEC(ZSTD(1)),
    baseline_id     FixedString(32) CODEC(NONE),

    mode            LowCardinality(String),
    engine_version  LowCardinality(String),
    formed_at       DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    received_at     DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    arrival         UInt64 MATERIALIZED bitNot(toUInt64(toUnixTimestamp64Nano(received_at))),
    traces          UInt32,
    trace_ids       Array(String) CODEC(ZSTD(1)),
    trace_digests   Array(String) CODEC(ZSTD(1)),
    features        Nested(name String, weight Float64),
    escalation_rate Float64,
    texts           UInt32,

    baseline_id_hex String ALIAS lower(hex(baseline_id)),

    INDEX agent_id_bloom agent_id TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = ReplacingMergeTree(arrival)
ORDER BY (tenant, agent_id, card_id, baseline_id)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

-- Baselines, each once.
CREATE OR REPLACE VIEW visible_drift_baselines AS
SELECT
    tenant, agent_id, card_id, baseline_id_hex AS baseline_id, mode, engine_version, formed_at, received_at,
    traces, trace_ids, trace_digests,
    arrayZip(features.name, features.weight) AS features, escalation_rate, texts
FROM drift_baselines FINAL
SETTINGS do_not_merge_across_partitions_select_final = 0;
