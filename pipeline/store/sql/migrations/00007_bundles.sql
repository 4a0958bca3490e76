-- +goose Up
-- Sealed AIVS bundles. Idempotent by sha256: the same bytes are the same row.
CREATE TABLE IF NOT EXISTS bundles
(
    tenant          LowCardinality(String),
    agent_id        String CODEC(ZSTD(1)),
    session_id      String CODEC(ZSTD(1)),
    part            UInt32 COMMENT 'from 1',
    sha256          FixedString(32) COMMENT 'of the .tar.gz' CODEC(NONE),

    last_part       Bool,
    path            String COMMENT 'within the bundle directory' CODEC(ZSTD(1)),
    bytes           UInt64,
    action_count    UInt64 COMMENT 'rows of the audit log, open and seal rows included',
    trace_count     UInt64,
    redactions      UInt64,
    first_event     DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    last_event      DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    first_sequence  UInt64,
    last_sequence   UInt64,
    trace_ids       Array(String) CODEC(ZSTD(1)),
    chain_hash      String,
    previous_sha256 String COMMENT 'hexadecimal; empty for the first part',
    key_id          LowCardinality(String),
    reason          LowCardinality(String) COMMENT 'ended, idle, requested, rotation, late',
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
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1;
