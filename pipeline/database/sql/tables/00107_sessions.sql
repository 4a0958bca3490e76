-- +goose Up
-- The exporter's state of each session: its extent, and whether it is open, sealed, or held because
-- rows and receipts differ.
CREATE TABLE IF NOT EXISTS sessions
(
    tenant         LowCardinality(String),
    agent_id       String CODEC(ZSTD(1)),
    session_id     String CODEC(ZSTD(1)),

    version        UInt64,
    status         LowCardinality(String),
    reason         String CODEC(ZSTD(1)),
    traces         UInt64,
    bundles        UInt32,
    ended          Bool,
    first_event    DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    last_event     DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    first_sequence UInt64,
    last_sequence  UInt64,
    updated_at     DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),

    INDEX agent_id_bloom agent_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX session_id_bloom session_id TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (tenant, agent_id, session_id)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

-- Sessions, each once, in the newest version.
CREATE OR REPLACE VIEW visible_sessions AS
SELECT
    tenant, agent_id, session_id, status, reason, traces, bundles, ended,
    first_event, last_event, first_sequence, last_sequence, updated_at
FROM sessions FINAL;
