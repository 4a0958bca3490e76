-- +goose Up
-- Cards that were revoked (AAP section 9.2), each once: the first revocation is kept.
CREATE TABLE IF NOT EXISTS revocations
(
    tenant     LowCardinality(String),
    agent_id   String CODEC(ZSTD(1)),
    card_id    String CODEC(ZSTD(1)),

    revoked_at DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    precedence UInt64 MATERIALIZED bitNot(toUInt64(toUnixTimestamp64Nano(revoked_at))),
    reason     String CODEC(ZSTD(1)),

    INDEX agent_id_bloom agent_id TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = ReplacingMergeTree(precedence)
ORDER BY (tenant, agent_id, card_id)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;
