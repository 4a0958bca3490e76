-- +goose Up
-- Verification results (AAP section 7.4), with the findings that profile spec adds. The key holds the
-- trace's identity and what judged it: card, engine version, profile, and the revocation of the card
-- if it led to a finding. If the same verdict was reached several times, the earliest row is kept. A
-- part with many small columns is one file until it is large, not a hundred and fifty.
-- verdict_id uses the digests as they are: toString of a FixedString cuts NUL bytes off its end.
CREATE TABLE IF NOT EXISTS verdicts
(
    event_hour         UInt32 CODEC(Delta, ZSTD(1)),
    tenant             LowCardinality(String),
    agent_id           String CODEC(ZSTD(1)),
    trace_id           String CODEC(ZSTD(1)),
    trace_digest       FixedString(32) CODEC(NONE),
    card_digest        FixedString(32) CODEC(ZSTD(1)),
    engine_version     LowCardinality(String),
    profile            LowCardinality(String),
    revoked_at         DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),

    verified_at        DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    precedence         UInt64 MATERIALIZED bitNot(toUInt64(toUnixTimestamp64Nano(verified_at))) CODEC(Delta, ZSTD(1)),
    event_time         DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    received_at        DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    retain_until       DateTime('UTC') CODEC(Delta, ZSTD(1)),
    stream_created     DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    stream_sequence    UInt64 CODEC(Delta, ZSTD(1)),
    session_id         String CODEC(ZSTD(1)),
    card_id            String CODEC(ZSTD(1)),

    status             LowCardinality(String),
    verified           Bool,
    recommended_action LowCardinality(String),
    violations         Nested(type LowCardinality(String), severity LowCardinality(String), description String, trace_field String),
    warnings           Nested(type LowCardinality(String), severity LowCardinality(String), description String, trace_field String),
    findings           Nested(type LowCardinality(String), severity LowCardinality(String), description String, trace_field String),
    similarity_score   Float64 CODEC(ZSTD(1)),
    similarities       Array(Float64) CODEC(ZSTD(1)),
    mean_similarity    Float64 CODEC(ZSTD(1)),
    trend              Float64 CODEC(ZSTD(1)),
    algorithm_version  LowCardinality(String),
    checks_performed   Array(LowCardinality(String)),
    absent_triggers    Array(UInt16) CODEC(ZSTD(1)),

    verdict_id         String ALIAS lower(hex(SHA256(concat(trace_digest, card_digest, engine_version, '\0', profile,
        if(toUnixTimestamp64Nano(revoked_at) = 0, '', concat('\0', toString(toUnixTimestamp64Nano(revoked_at)))))))),
    trace_digest_hex   String ALIAS lower(hex(trace_digest)),
    card_digest_hex    String ALIAS lower(hex(card_digest)),

    grounded_claims    UInt32 CODEC(ZSTD(1)),
    inferred_claims    UInt32 CODEC(ZSTD(1)),
    methodology        LowCardinality(String),

    INDEX agent_id_bloom agent_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX trace_id_bloom trace_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX session_id_bloom session_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX stream_sequence_range stream_sequence TYPE minmax GRANULARITY 1,
    INDEX status_set status TYPE set(4) GRANULARITY 1
)
ENGINE = ReplacingMergeTree(precedence)
PARTITION BY toYYYYMM(received_at)
PRIMARY KEY (event_hour, tenant, agent_id, trace_id, trace_digest, card_digest, engine_version, profile)
ORDER BY (event_hour, tenant, agent_id, trace_id, trace_digest, card_digest, engine_version, profile, revoked_at)
TTL retain_until
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1,
         min_bytes_for_wide_part = 67108864;
