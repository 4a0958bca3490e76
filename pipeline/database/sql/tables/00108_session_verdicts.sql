-- +goose Up
-- Verdicts on sessions (AAP section 7.2, level 2): one for each sealed part. The part's bundle contains
-- the same as session.json.
CREATE TABLE IF NOT EXISTS session_verdicts
(
    tenant             LowCardinality(String),
    agent_id           String CODEC(ZSTD(1)),
    session_id         String CODEC(ZSTD(1)),
    part               UInt32,
    engine_version     LowCardinality(String),
    profile            LowCardinality(String),

    verified_at        DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    precedence         UInt64 MATERIALIZED bitNot(toUInt64(toUnixTimestamp64Nano(verified_at))),
    last_part          Bool,
    verified           Bool,
    recommended_action LowCardinality(String),
    traces             UInt64,
    verified_traces    UInt64,
    unknown_cards      UInt64,
    violation_counts   Map(LowCardinality(String), UInt64),
    trace_findings     Map(LowCardinality(String), UInt64),
    finding_counts     Map(LowCardinality(String), UInt64),
    findings           Nested(type LowCardinality(String), severity LowCardinality(String), description String, trace_id String, trace_field String),
    mean_similarity    Float64,
    min_similarity     Float64,
    trend              Float64,
    algorithm_version  LowCardinality(String),
    checks_performed   Array(LowCardinality(String)),
    unchecked          Array(String) CODEC(ZSTD(1)),

    INDEX agent_id_bloom agent_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX session_id_bloom session_id TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = ReplacingMergeTree(precedence)
PARTITION BY toYYYYMM(verified_at)
ORDER BY (tenant, agent_id, session_id, part, engine_version, profile)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

-- Verdicts on sessions, each once.
CREATE OR REPLACE VIEW visible_session_verdicts AS
SELECT
    tenant, agent_id, session_id, part, last_part, verified, recommended_action, traces, verified_traces, unknown_cards,
    violation_counts, trace_findings, finding_counts,
    findings.type AS finding_types, findings.severity AS finding_severities, findings.description AS finding_descriptions,
    findings.trace_id AS finding_traces, findings.trace_field AS finding_fields,
    mean_similarity, min_similarity, trend, algorithm_version, engine_version, profile, checks_performed, unchecked, verified_at
FROM session_verdicts FINAL
SETTINGS do_not_merge_across_partitions_select_final = 0;
