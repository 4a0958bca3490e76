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
    card_digest        FixedString(32) COMMENT 'of the card''s JCS form; zero while the card is unknown' CODEC(ZSTD(1)),
    engine_version     LowCardinality(String),
    profile            LowCardinality(String),
    revoked_at         DateTime64(9, 'UTC') COMMENT 'of the card, where that led to a finding; else 1970' CODEC(Delta, ZSTD(1)),

    verified_at        DateTime64(9, 'UTC') COMMENT 'timestamp of the verification' CODEC(Delta, ZSTD(1)),
    precedence         UInt64 MATERIALIZED bitNot(toUInt64(toUnixTimestamp64Nano(verified_at))) COMMENT 'larger is earlier' CODEC(Delta, ZSTD(1)),
    event_time         DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    received_at        DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    retain_until       DateTime('UTC') CODEC(Delta, ZSTD(1)),
    stream_created     DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    stream_sequence    UInt64 CODEC(Delta, ZSTD(1)),
    session_id         String CODEC(ZSTD(1)),
    card_id            String CODEC(ZSTD(1)),

    status             LowCardinality(String) COMMENT 'judged, card_unknown',
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
    absent_triggers    Array(UInt16) COMMENT 'indexes of the card''s triggers whose field the trace does not have' CODEC(ZSTD(1)),

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

-- The current verdict on each trace. A judgement takes precedence over "card unknown", then a verdict
-- that considers the revocation of its card, then the newest. The order is that of the table's key,
-- so picking the first row of each trace is cheap.
CREATE OR REPLACE VIEW current_verdicts AS
SELECT
    event_hour, tenant, agent_id, trace_id, trace_digest_hex AS digest,
    event_time, received_at, stream_sequence, session_id, card_id,
    verdict_id, status, verified, recommended_action,
    violations.type AS violation_types, violations.severity AS violation_severities,
    violations.description AS violation_descriptions, violations.trace_field AS violation_fields,
    warnings.type AS warning_types, warnings.description AS warning_descriptions, warnings.trace_field AS warning_fields,
    findings.type AS finding_types, findings.severity AS finding_severities,
    findings.description AS finding_descriptions, findings.trace_field AS finding_fields,
    similarity_score, similarities, mean_similarity, trend,
    algorithm_version, engine_version, profile, card_digest_hex AS card_digest, revoked_at AS card_revoked_at, checks_performed, absent_triggers,
    grounded_claims, inferred_claims, methodology, verified_at
FROM verdicts FINAL
ORDER BY event_hour, tenant, agent_id, trace_id, trace_digest, status = 'judged' DESC, revoked_at DESC, verified_at DESC
LIMIT 1 BY event_hour, tenant, agent_id, trace_id, trace_digest
SETTINGS do_not_merge_across_partitions_select_final = 0;

-- One row for each violation of a current verdict (AAP section 7.5).
CREATE OR REPLACE VIEW violations AS
SELECT
    event_hour, tenant, agent_id, trace_id, digest, event_time, received_at, stream_sequence, session_id, card_id, verdict_id, recommended_action,
    item.1 AS type, item.2 AS severity, item.3 AS description, item.4 AS trace_field
FROM current_verdicts
ARRAY JOIN arrayZip(violation_types, violation_severities, violation_descriptions, violation_fields) AS item;

-- One row for each finding of a current verdict: faults that section 7.5 does not cover.
CREATE OR REPLACE VIEW findings AS
SELECT
    event_hour, tenant, agent_id, trace_id, digest, event_time, received_at, stream_sequence, session_id, card_id, verdict_id, recommended_action,
    item.1 AS type, item.2 AS severity, item.3 AS description, item.4 AS trace_field
FROM current_verdicts
ARRAY JOIN arrayZip(finding_types, finding_severities, finding_descriptions, finding_fields) AS item;

-- One row for each warning of a current verdict.
CREATE OR REPLACE VIEW warnings AS
SELECT
    event_hour, tenant, agent_id, trace_id, digest, event_time, received_at, stream_sequence, session_id, card_id, verdict_id, recommended_action,
    item.1 AS type, item.2 AS description, item.3 AS trace_field
FROM current_verdicts
ARRAY JOIN arrayZip(warning_types, warning_descriptions, warning_fields) AS item;
