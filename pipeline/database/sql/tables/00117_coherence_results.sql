-- +goose Up
-- Results of the value coherence handshake (AAP section 6), with the messages that led to them.
CREATE TABLE IF NOT EXISTS coherence_results
(
    event_hour           UInt32,
    tenant               LowCardinality(String),
    initiator_agent_id   String CODEC(ZSTD(1)),
    responder_agent_id   String CODEC(ZSTD(1)),
    handshake_id         FixedString(32) CODEC(NONE),

    request_id           String CODEC(ZSTD(1)),
    transport            LowCardinality(String),
    requested_at         DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    checked_at           DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    answered_at          DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    received_at          DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    arrival              UInt64 MATERIALIZED bitNot(toUInt64(toUnixTimestamp64Nano(received_at))),
    retain_until         DateTime('UTC'),

    initiator_card_id    String CODEC(ZSTD(1)),
    responder_card_id    String CODEC(ZSTD(1)),
    initiator_digest     FixedString(32) CODEC(NONE),
    responder_digest     FixedString(32) CODEC(NONE),

    task_type            String CODEC(ZSTD(1)),
    values_required      Array(String) CODEC(ZSTD(1)),
    data_categories      Array(String) CODEC(ZSTD(1)),
    values_intersection  Array(String) CODEC(ZSTD(1)),
    required_from        LowCardinality(String),

    compatible           Bool,
    score                Float64,
    matched              Array(String) CODEC(ZSTD(1)),
    unmatched            Array(String) CODEC(ZSTD(1)),
    conflicts            Nested(initiator_value String, responder_value String, conflict_type LowCardinality(String),
                                description String, resolved_by LowCardinality(String)),
    proceed              Bool,
    conditions           Array(String) CODEC(ZSTD(1)),
    resolution           LowCardinality(String),
    reasons              Nested(code LowCardinality(String), side LowCardinality(String), agent_id String, card_id String, description String),
    resolution_steps     Nested(step LowCardinality(String), subject String, side LowCardinality(String),
                                outcome LowCardinality(String), reason String),

    engine_version       LowCardinality(String),
    profile              LowCardinality(String),
    min_coherence        Float64,
    methodology          LowCardinality(String),
    key_id               String CODEC(ZSTD(1)),
    request              String CODEC(ZSTD(1)),
    `check`              String CODEC(ZSTD(1)),
    result               String CODEC(ZSTD(1)),

    handshake_id_hex     String ALIAS lower(hex(handshake_id)),
    data_sharing         String ALIAS JSONExtractRaw(`check`, 'proposed_collaboration', 'data_sharing'),
    autonomy_scope       String ALIAS JSONExtractRaw(`check`, 'proposed_collaboration', 'autonomy_scope'),
    proposed_resolution  String ALIAS JSONExtractRaw(result, 'proposed_resolution'),

    INDEX initiator_bloom initiator_agent_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX responder_bloom responder_agent_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX request_id_bloom request_id TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = ReplacingMergeTree(arrival)
PARTITION BY toYYYYMM(received_at)
ORDER BY (event_hour, tenant, initiator_agent_id, responder_agent_id, handshake_id)
TTL retain_until
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

-- Results of the value coherence handshake, each once.
CREATE OR REPLACE VIEW visible_coherence_results AS
SELECT
    tenant, initiator_agent_id, responder_agent_id, request_id, transport, requested_at, checked_at, answered_at, received_at,
    initiator_card_id, responder_card_id, lower(hex(initiator_digest)) AS initiator_digest, lower(hex(responder_digest)) AS responder_digest,
    task_type, values_required, data_categories, values_intersection, required_from, data_sharing, autonomy_scope,
    compatible, score, matched, unmatched,
    arrayZip(conflicts.initiator_value, conflicts.responder_value, conflicts.conflict_type, conflicts.description, conflicts.resolved_by) AS conflicts,
    proceed, conditions, resolution, proposed_resolution,
    arrayZip(reasons.code, reasons.side, reasons.agent_id, reasons.card_id, reasons.description) AS reasons,
    arrayZip(resolution_steps.step, resolution_steps.subject, resolution_steps.side, resolution_steps.outcome, resolution_steps.reason) AS resolution_steps,
    engine_version, profile, min_coherence, methodology, key_id, handshake_id_hex AS handshake_id, request, `check`, result
FROM coherence_results FINAL
SETTINGS do_not_merge_across_partitions_select_final = 0;
