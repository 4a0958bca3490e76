-- +goose Up
-- What drift compared traces with: each baseline that was ever in force, named by
-- the points and alerts under it. It is never changed and never removed.
CREATE TABLE IF NOT EXISTS drift_baselines
(
    tenant          LowCardinality(String),
    agent_id        String CODEC(ZSTD(1)),
    card_id         String CODEC(ZSTD(1)),
    baseline_id     FixedString(32) COMMENT 'SHA-256 of agent, card, mode, engine version, traces and features' CODEC(NONE),

    mode            LowCardinality(String) COMMENT 'how it came about: first, rolling, pinned',
    engine_version  LowCardinality(String),
    formed_at       DateTime64(9, 'UTC') COMMENT 'event time of the trace that completed it; of a pin, when it was pinned' CODEC(Delta, ZSTD(1)),
    received_at     DateTime64(9, 'UTC') COMMENT 'broker time of that trace; of a pin, when it was pinned' CODEC(Delta, ZSTD(1)),
    arrival         UInt64 MATERIALIZED bitNot(toUInt64(toUnixTimestamp64Nano(received_at))),
    traces          UInt32 COMMENT 'that it is the centroid of',
    trace_ids       Array(String) COMMENT 'in the order applied' CODEC(ZSTD(1)),
    trace_digests   Array(String) COMMENT 'in 64 hexadecimal digits, like trace_ids' CODEC(ZSTD(1)),
    features        Nested(name String, weight Float64),
    escalation_rate Float64 COMMENT 'share of its traces that required an escalation',
    texts           UInt32 COMMENT 'selection reasonings that were sketched',

    baseline_id_hex String ALIAS lower(hex(baseline_id)),

    INDEX agent_id_bloom agent_id TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = ReplacingMergeTree(arrival)
ORDER BY (tenant, agent_id, card_id, baseline_id)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1;
