-- +goose Up
-- One row for each attempt to seal a session: what was compared, and every row that differs from its
-- receipt.
CREATE TABLE IF NOT EXISTS seal_runs
(
    tenant          LowCardinality(String),
    agent_id        String CODEC(ZSTD(1)),
    session_id      String CODEC(ZSTD(1)),
    run_id          String CODEC(ZSTD(1)),

    started_at      DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    finished_at     DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    outcome         LowCardinality(String),
    reason          String CODEC(ZSTD(1)),
    traces          UInt64,
    cut             UInt64,
    changed         Array(String) CODEC(ZSTD(1)),
    missing         Array(String) CODEC(ZSTD(1)),
    foreign_rows    Array(String) CODEC(ZSTD(1)),
    sha256          String,

    INDEX agent_id_bloom agent_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX session_id_bloom session_id TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = ReplacingMergeTree(finished_at)
PARTITION BY toYYYYMM(started_at)
ORDER BY (tenant, agent_id, session_id, run_id)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;
