-- +goose Up
-- Decisions of the message-integrity RFC's gateway: messages signed or refused, accepted or rejected by
-- their receivers, tool calls, tool results.
CREATE TABLE IF NOT EXISTS messages
(
    event_hour      UInt32,
    tenant          LowCardinality(String),
    agent_id        String CODEC(ZSTD(1)),
    digest          FixedString(32) CODEC(NONE),

    session_id      String CODEC(ZSTD(1)),
    record_id       String CODEC(ZSTD(1)),
    kind            LowCardinality(String),
    decided_at      DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    received_at     DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    arrival         UInt64 MATERIALIZED bitNot(toUInt64(toUnixTimestamp64Nano(received_at))),
    retain_until    DateTime('UTC'),

    mode            LowCardinality(String),
    outcome         LowCardinality(String),
    reason          LowCardinality(String),
    detail          String CODEC(ZSTD(1)),

    message_id      String CODEC(ZSTD(1)),
    source          LowCardinality(String),
    sender          String CODEC(ZSTD(1)),
    intents         Array(LowCardinality(String)),
    inferred        Bool,
    approves        String CODEC(ZSTD(1)),
    approved        Array(LowCardinality(String)),
    approval_id     String CODEC(ZSTD(1)),
    key_id          String CODEC(ZSTD(1)),
    content_sha256  String CODEC(ZSTD(1)),
    stripped        UInt32,
    tool_name       LowCardinality(String),
    tool_class      LowCardinality(String),
    seq             UInt64,

    record          String CODEC(ZSTD(1)),

    digest_hex      String ALIAS lower(hex(digest)),

    INDEX agent_id_bloom agent_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX session_id_bloom session_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX message_id_bloom message_id TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = ReplacingMergeTree(arrival)
PARTITION BY toYYYYMM(received_at)
ORDER BY (event_hour, tenant, agent_id, digest)
TTL retain_until
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

-- Decisions about messages, tool calls and tool results, each once.
CREATE OR REPLACE VIEW visible_messages AS
SELECT
    event_hour, tenant, agent_id, session_id, record_id, kind, decided_at, received_at, mode, outcome, reason, detail,
    message_id, source, sender, intents, inferred, approves, approved, approval_id, key_id, content_sha256, stripped,
    tool_name, tool_class, seq, digest_hex AS digest, record
FROM messages FINAL
SETTINGS do_not_merge_across_partitions_select_final = 0;
