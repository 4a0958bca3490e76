-- +goose Up
-- Alignment cards as registered (AAP section 4). The content of a card_id never changes.
CREATE TABLE IF NOT EXISTS cards
(
    tenant               LowCardinality(String),
    agent_id             String CODEC(ZSTD(1)),
    card_id              String CODEC(ZSTD(1)),
    digest               FixedString(32) CODEC(NONE),

    registered_at        DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    precedence           UInt64 MATERIALIZED bitNot(toUInt64(toUnixTimestamp64Nano(registered_at))),
    shape                LowCardinality(String),
    aap_version          LowCardinality(String),
    issued_at            DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    expires_at           Nullable(DateTime64(9, 'UTC')),
    principal_type       LowCardinality(String),
    principal_identifier String,
    relationship         LowCardinality(String),
    escalation_contact   String,
    declared_values      Array(LowCardinality(String)),
    value_definitions    Nested(id LowCardinality(String), name String, description String, priority Nullable(Float64)),
    conflicts_with       Array(LowCardinality(String)),
    hierarchy            LowCardinality(String),
    bounded_actions      Array(LowCardinality(String)),
    forbidden_actions    Array(LowCardinality(String)),
    escalation_triggers  Nested(condition String, action LowCardinality(String), reason String),
    max_value_amount     Nullable(Float64),
    max_value_currency   LowCardinality(String),
    trace_format         LowCardinality(String),
    retention_days       UInt32,
    storage_type         LowCardinality(String),
    storage_location     String,
    queryable            Bool,
    query_endpoint       String,
    tamper_evidence      LowCardinality(String),
    raw                  String CODEC(ZSTD(1)),

    digest_hex           String ALIAS lower(hex(digest)),
    extensions           String ALIAS JSONExtractRaw(raw, 'extensions'),

    INDEX agent_id_bloom agent_id TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = ReplacingMergeTree(precedence)
ORDER BY (tenant, agent_id, card_id, digest)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;
