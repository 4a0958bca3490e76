-- +goose Up
-- Sealed AIVS bundles. The sha256 makes them idempotent: the same bytes are the same row.
CREATE TABLE IF NOT EXISTS bundles
(
    tenant          LowCardinality(String),
    agent_id        String CODEC(ZSTD(1)),
    session_id      String CODEC(ZSTD(1)),
    part            UInt32,
    sha256          FixedString(32) CODEC(NONE),

    last_part       Bool,
    path            String CODEC(ZSTD(1)),
    bytes           UInt64,
    action_count    UInt64,
    trace_count     UInt64,
    redactions      UInt64,
    first_event     DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    last_event      DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    first_sequence  UInt64,
    last_sequence   UInt64,
    trace_ids       Array(String) CODEC(ZSTD(1)),
    chain_hash      String,
    previous_sha256 String,
    key_id          LowCardinality(String),
    reason          LowCardinality(String),
    exported_at     DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    precedence      UInt64 MATERIALIZED bitNot(toUInt64(toUnixTimestamp64Nano(exported_at))),

    sha256_hex      String ALIAS lower(hex(sha256)),

    INDEX agent_id_bloom agent_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX session_id_bloom session_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX trace_ids_bloom trace_ids TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = ReplacingMergeTree(precedence)
PARTITION BY toYYYYMM(exported_at)
ORDER BY (tenant, agent_id, session_id, part, sha256)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

-- Sealed bundles, each once.
CREATE OR REPLACE VIEW visible_bundles AS
SELECT
    tenant, agent_id, session_id, part, last_part, sha256_hex AS sha256, path, bytes, action_count, trace_count,
    redactions, first_event, last_event, first_sequence, last_sequence, trace_ids, chain_hash, previous_sha256,
    key_id, reason, exported_at
FROM bundles FINAL
SETTINGS do_not_merge_across_partitions_select_final = 0;
