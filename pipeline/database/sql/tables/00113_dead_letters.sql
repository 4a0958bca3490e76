-- +goose Up
-- Records that can never succeed: the original bytes, and the reason.
CREATE TABLE IF NOT EXISTS dead_letters
(
    event_hour      UInt32,
    tenant          LowCardinality(String),
    stage           LowCardinality(String),
    origin_created  DateTime64(9, 'UTC'),
    origin_sequence UInt64,
    digest          FixedString(32) CODEC(NONE),

    received_at     DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    arrival         UInt64 MATERIALIZED bitNot(toUInt64(toUnixTimestamp64Nano(received_at))),
    retain_until    DateTime('UTC'),
    subject         String CODEC(ZSTD(1)),
    agent_id        String CODEC(ZSTD(1)),
    trace_id        String CODEC(ZSTD(1)),
    reason          LowCardinality(String),
    faults          Nested(pointer String, message String),
    raw             String CODEC(ZSTD(1)),

    digest_hex      String ALIAS lower(hex(digest)),

    INDEX agent_id_bloom agent_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX trace_id_bloom trace_id TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = ReplacingMergeTree(arrival)
PARTITION BY toYYYYMM(received_at)
ORDER BY (event_hour, tenant, stage, origin_created, origin_sequence, digest)
TTL retain_until
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

-- Dead letters, each once, without their bytes. Only users with the right to column raw of the table
-- may read those.
CREATE OR REPLACE VIEW visible_dead_letters AS
SELECT
    tenant, stage, reason, origin_created, origin_sequence, received_at, subject, agent_id, trace_id,
    digest_hex AS digest, arrayZip(faults.pointer, faults.message) AS faults
FROM dead_letters FINAL
SETTINGS do_not_merge_across_partitions_select_final = 0;
