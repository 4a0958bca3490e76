-- +goose Up
-- The drift measurement of each trace (AAP section 8.2), with its mode and its baseline.
CREATE TABLE IF NOT EXISTS drift_points
(
    event_hour      UInt32 CODEC(Delta, ZSTD(1)),
    tenant          LowCardinality(String),
    agent_id        String CODEC(ZSTD(1)),
    card_id         String CODEC(ZSTD(1)),
    trace_id        String CODEC(ZSTD(1)),
    trace_digest    FixedString(32) CODEC(NONE),
    engine_version  LowCardinality(String),

    event_time      DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    received_at     DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    arrival         UInt64 MATERIALIZED bitNot(toUInt64(toUnixTimestamp64Nano(received_at))) CODEC(Delta, ZSTD(1)),
    retain_until    DateTime('UTC') CODEC(Delta, ZSTD(1)),
    stream_created  DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    stream_sequence UInt64 CODEC(Delta, ZSTD(1)),
    session_id      String CODEC(ZSTD(1)),

    status          LowCardinality(String),
    similarity      Nullable(Float64) CODEC(ZSTD(1)),
    threshold       Float64 CODEC(ZSTD(1)),
    streak          UInt32 CODEC(ZSTD(1)),
    methodology     LowCardinality(String),

    trace_digest_hex String ALIAS lower(hex(trace_digest)),

    mode            LowCardinality(String),
    baseline_id     FixedString(32) CODEC(ZSTD(1)),
    baseline_id_hex String ALIAS lower(hex(baseline_id)),

    INDEX agent_id_bloom agent_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX trace_id_bloom trace_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX session_id_bloom session_id TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = ReplacingMergeTree(arrival)
PARTITION BY toYYYYMM(received_at)
ORDER BY (event_hour, tenant, agent_id, card_id, trace_id, trace_digest, engine_version)
TTL retain_until
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;
