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

-- Cards, each once, and whether and why each was revoked.
CREATE OR REPLACE VIEW visible_cards AS
SELECT
    c.tenant AS tenant, c.agent_id AS agent_id, c.card_id AS card_id, c.digest_hex AS digest, registered_at, shape, aap_version, issued_at, expires_at,
    if(r.card_id = '', NULL, toNullable(r.revoked_at)) AS revoked_at, r.reason AS revocation_reason,
    principal_type, principal_identifier, relationship, escalation_contact,
    declared_values, arrayZip(value_definitions.id, value_definitions.name, value_definitions.description, value_definitions.priority) AS value_definitions,
    conflicts_with, hierarchy, bounded_actions, forbidden_actions,
    arrayZip(escalation_triggers.condition, escalation_triggers.action, escalation_triggers.reason) AS escalation_triggers,
    max_value_amount, max_value_currency, trace_format, retention_days, storage_type, storage_location,
    queryable, query_endpoint, tamper_evidence, extensions, raw
FROM (SELECT *, digest_hex, extensions FROM cards FINAL) AS c
LEFT JOIN (SELECT tenant, agent_id, card_id, revoked_at, reason FROM revocations FINAL) AS r
    ON c.tenant = r.tenant AND c.agent_id = r.agent_id AND c.card_id = r.card_id;
