-- +goose Up
-- What responders of the value coherence handshake report about the outcome of its task, and the
-- traces that show it (AAP section 3.2, step 6).
CREATE TABLE IF NOT EXISTS task_results
(
    event_hour           UInt32,
    tenant               LowCardinality(String),
    initiator_agent_id   String CODEC(ZSTD(1)),
    responder_agent_id   String CODEC(ZSTD(1)),
    digest               FixedString(32) CODEC(NONE),

    request_id           String CODEC(ZSTD(1)),
    transport            LowCardinality(String),
    finished_at          DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    received_at          DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    arrival              UInt64 MATERIALIZED bitNot(toUInt64(toUnixTimestamp64Nano(received_at))),
    retain_until         DateTime('UTC'),

    responder_card_id    String CODEC(ZSTD(1)),
    status               LowCardinality(String),
    trace_ids            Array(String) CODEC(ZSTD(1)),
    session_id           String CODEC(ZSTD(1)),
    key_id               String CODEC(ZSTD(1)),
    message              String CODEC(ZSTD(1)),

    digest_hex           String ALIAS lower(hex(digest)),
    result               String ALIAS JSONExtractRaw(message, 'result'),

    INDEX initiator_bloom initiator_agent_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX responder_bloom responder_agent_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX request_id_bloom request_id TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = ReplacingMergeTree(arrival)
PARTITION BY toYYYYMM(received_at)
ORDER BY (event_hour, tenant, initiator_agent_id, responder_agent_id, digest)
TTL retain_until
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

-- Results of tasks, each once.
CREATE OR REPLACE VIEW visible_task_results AS
SELECT
    tenant, initiator_agent_id, responder_agent_id, request_id, transport, finished_at, received_at,
    responder_card_id, status, result, trace_ids, session_id, key_id, digest_hex AS digest, message
FROM task_results FINAL
SETTINGS do_not_merge_across_partitions_select_final = 0;
