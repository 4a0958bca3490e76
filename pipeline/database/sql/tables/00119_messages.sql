-- +goose Up
-- Decisions of the message-integrity RFC's gateway: messages signed or refused, accepted or rejected by
-- their receivers, tool calls, tool results.
CREATE TABLE IF NOT EXISTS messages
(
    event_hour      UInt32 COMMENT 'decided_at in whole hours since 1970',
    tenant          LowCardinality(String),
    agent_id        String COMMENT 'whom the message is for' CODEC(ZSTD(1)),
    digest          FixedString(32) COMMENT 'SHA-256 of record: what the operator''s ledger lists' CODEC(NONE),

    session_id      String CODEC(ZSTD(1)),
    record_id       String CODEC(ZSTD(1)),
    kind            LowCardinality(String) COMMENT 'message, verification, tool_call, tool_result',
    decided_at      DateTime64(9, 'UTC') COMMENT 'by the clock of the ingest that decided' CODEC(Delta, ZSTD(1)),
    received_at     DateTime64(9, 'UTC') COMMENT 'broker time of the record' CODEC(Delta, ZSTD(1)),
    arrival         UInt64 MATERIALIZED bitNot(toUInt64(toUnixTimestamp64Nano(received_at))),
    retain_until    DateTime('UTC'),

    mode            LowCardinality(String) COMMENT 'off, warn, enforce',
    outcome         LowCardinality(String) COMMENT 'signed, refused; accepted, rejected; executed, blocked',
    reason          LowCardinality(String) COMMENT 'why not; in mode warn beside an outcome that let it through',
    detail          String CODEC(ZSTD(1)),

    message_id      String COMMENT 'that the decision is about or rests on' CODEC(ZSTD(1)),
    source          LowCardinality(String) COMMENT 'human, agent, system; empty where nothing was authenticated',
    sender          String CODEC(ZSTD(1)),
    intents         Array(LowCardinality(String)),
    inferred        Bool COMMENT 'the intents were',
    approves        String COMMENT 'message that this one consents to' CODEC(ZSTD(1)),
    approved        Array(LowCardinality(String)) COMMENT 'classes that it consents to',
    approval_id     String COMMENT 'message that consented to this one' CODEC(ZSTD(1)),
    key_id          String CODEC(ZSTD(1)),
    content_sha256  String COMMENT 'of the text, or of a tool result''s canonical form; hexadecimal' CODEC(ZSTD(1)),
    stripped        UInt32 COMMENT 'look-alikes taken out of the text',
    tool_name       LowCardinality(String),
    tool_class      LowCardinality(String) COMMENT 'empty for a tool without one',
    seq             UInt64 COMMENT 'of a tool result, within its session',

    record          String COMMENT 'as bucket messages holds it' CODEC(ZSTD(1)),

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
