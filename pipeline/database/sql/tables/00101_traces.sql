-- +goose Up
-- Every AP-Trace (AAP section 5) as it was received. The key (tenant, agent_id, trace_id, digest)
-- identifies a record's bytes; if it arrived several times, the earliest row is kept. Columns that
-- queries filter or group by are stored. All others are ALIAS columns, read from raw on demand.
CREATE TABLE IF NOT EXISTS traces
(
    event_hour              UInt32 CODEC(Delta, ZSTD(1)),
    tenant                  LowCardinality(String),
    agent_id                String CODEC(ZSTD(1)),
    trace_id                String CODEC(ZSTD(1)),
    digest                  FixedString(32) CODEC(NONE),

    event_time              DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    received_at             DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    arrival                 UInt64 MATERIALIZED bitNot(toUInt64(toUnixTimestamp64Nano(received_at))) CODEC(Delta, ZSTD(1)),
    retain_until            DateTime('UTC') CODEC(Delta, ZSTD(1)),
    stream_created          DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    stream_sequence         UInt64 CODEC(Delta, ZSTD(1)),
    stream_partition        UInt16 CODEC(ZSTD(1)),

    card_id                 String CODEC(ZSTD(1)),
    session_id              String CODEC(ZSTD(1)),
    session_end             Bool,
    sequence_number         Nullable(UInt64) CODEC(ZSTD(1)),

    action_type             LowCardinality(String),
    action_name             LowCardinality(String),
    action_category         LowCardinality(String),

    selected                String CODEC(ZSTD(1)),
    values_applied          Array(LowCardinality(String)),
    confidence              Nullable(Float64) CODEC(ZSTD(1)),

    has_escalation          Bool,
    escalation_evaluated    Bool,
    escalation_required     Bool,
    escalation_id           String CODEC(ZSTD(1)),
    escalation_status       LowCardinality(String),

    conversation_turn       Nullable(Int64) CODEC(ZSTD(1)),
    prior_trace_ids         Array(String) CODEC(ZSTD(1)),

    has_execution           Bool,
    tool_name               LowCardinality(String),
    cost_cents              Int64 CODEC(ZSTD(1)),
    execution_error         String CODEC(ZSTD(1)),

    raw                     String CODEC(ZSTD(1)),

    digest_hex              String ALIAS lower(hex(digest)),
    action                  String ALIAS JSONExtractRaw(raw, 'action'),
    target_type             String ALIAS JSONExtractString(raw, 'action', 'target', 'type'),
    target_identifier       String ALIAS JSONExtractString(raw, 'action', 'target', 'identifier'),
    parameters              String ALIAS JSONExtractRaw(raw, 'action', 'parameters'),
    decision                String ALIAS JSONExtractRaw(raw, 'decision'),
    selection_reasoning     String ALIAS JSONExtractString(raw, 'decision', 'selection_reasoning'),
    alternatives_considered Array(String) ALIAS JSONExtractArrayRaw(raw, 'decision', 'alternatives_considered'),
    option_ids              Array(String) ALIAS arrayMap(a -> JSONExtractString(a, 'option_id'), JSONExtractArrayRaw(raw, 'decision', 'alternatives_considered')),
    option_descriptions     Array(String) ALIAS arrayMap(a -> JSONExtractString(a, 'description'), JSONExtractArrayRaw(raw, 'decision', 'alternatives_considered')),
    option_scores           Array(Nullable(Float64)) ALIAS arrayMap(a -> JSONExtract(a, 'score', 'Nullable(Float64)'), JSONExtractArrayRaw(raw, 'decision', 'alternatives_considered')),
    option_scoring_factors  Array(Map(String, Float64)) ALIAS arrayMap(a -> JSONExtract(a, 'scoring_factors', 'Map(String, Float64)'), JSONExtractArrayRaw(raw, 'decision', 'alternatives_considered')),
    option_flags            Array(Array(String)) ALIAS arrayMap(a -> JSONExtract(a, 'flags', 'Array(String)'), JSONExtractArrayRaw(raw, 'decision', 'alternatives_considered')),
    escalation              String ALIAS JSONExtractRaw(raw, 'escalation'),
    triggers_checked        Array(String) ALIAS JSONExtractArrayRaw(raw, 'escalation', 'triggers_checked'),
    triggers                Array(String) ALIAS arrayMap(c -> JSONExtractString(c, 'trigger'), JSONExtractArrayRaw(raw, 'escalation', 'triggers_checked')),
    triggers_matched        Array(Bool) ALIAS arrayMap(c -> JSONExtractBool(c, 'matched'), JSONExtractArrayRaw(raw, 'escalation', 'triggers_checked')),
    triggers_value_observed Array(String) ALIAS arrayMap(c -> JSONExtractRaw(c, 'value_observed'), JSONExtractArrayRaw(raw, 'escalation', 'triggers_checked')),
    escalation_reason       String ALIAS JSONExtractString(raw, 'escalation', 'reason'),
    principal_response      String ALIAS JSONExtractRaw(raw, 'escalation', 'principal_response'),
    response_decision       String ALIAS JSONExtractString(raw, 'escalation', 'principal_response', 'decision'),
    response_time           Nullable(DateTime64(9, 'UTC')) ALIAS parseDateTime64BestEffortOrNull(upper(JSONExtractString(raw, 'escalation', 'principal_response', 'timestamp')), 9, 'UTC'),
    response_conditions     Array(String) ALIAS JSONExtract(raw, 'escalation', 'principal_response', 'conditions', 'Array(String)'),
    context                 String ALIAS JSONExtractRaw(raw, 'context'),
    environment             String ALIAS JSONExtractRaw(raw, 'context', 'environment'),
    metadata                String ALIAS JSONExtractRaw(raw, 'context', 'metadata'),
    execution_inputs        String ALIAS JSONExtractRaw(raw, 'context', 'metadata', 'execution', 'inputs'),
    execution_outputs       String ALIAS JSONExtractRaw(raw, 'context', 'metadata', 'execution', 'outputs'),

    INDEX agent_id_bloom agent_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX trace_id_bloom trace_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX session_id_bloom session_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX stream_sequence_range stream_sequence TYPE minmax GRANULARITY 1
)
ENGINE = ReplacingMergeTree(arrival)
PARTITION BY toYYYYMM(received_at)
ORDER BY (event_hour, tenant, agent_id, trace_id, digest)
TTL retain_until
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

-- Each trace once, with the members read from raw as columns.
CREATE OR REPLACE VIEW visible_traces AS
SELECT
    tenant, agent_id, trace_id, digest_hex AS digest,
    event_hour, event_time, received_at, retain_until, stream_created, stream_sequence, stream_partition,
    card_id, session_id, session_end, sequence_number,
    action_type, action_name, action_category, action, target_type, target_identifier, parameters,
    decision, selected, selection_reasoning, values_applied, confidence, alternatives_considered,
    option_ids, option_descriptions, option_scores, option_scoring_factors, option_flags,
    has_escalation, escalation_evaluated, escalation_required, escalation_id, escalation_status, escalation_reason,
    escalation, triggers_checked, triggers, triggers_matched, triggers_value_observed,
    principal_response, response_decision, response_time, response_conditions,
    context, conversation_turn, prior_trace_ids, environment, metadata,
    has_execution, tool_name, cost_cents, execution_error, execution_inputs, execution_outputs,
    raw
FROM traces FINAL
SETTINGS do_not_merge_across_partitions_select_final = 0;

-- Each (agent_id, trace_id) that was published with several contents. All of them are kept, judged
-- and sealed. The first of digests arrived first.
CREATE OR REPLACE VIEW conflicts AS
SELECT
    tenant, agent_id, trace_id,
    arrayMap(p -> p.2, arraySort(groupArray((stream_sequence, lower(hex(digest)))))) AS digests,
    min(received_at) AS first_received,
    max(received_at) AS last_received
FROM traces FINAL
GROUP BY tenant, agent_id, trace_id
HAVING count() > 1
SETTINGS do_not_merge_across_partitions_select_final = 0;
