-- +goose Up
-- The span of OpenTelemetry in which a trace was published, from the header traceparent of its message.
-- Rows of before have none.
ALTER TABLE traces
    ADD COLUMN IF NOT EXISTS otel_trace_id String CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS otel_span_id String CODEC(ZSTD(1)),
    ADD INDEX IF NOT EXISTS otel_trace_bloom otel_trace_id TYPE bloom_filter(0.0001) GRANULARITY 1;

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
    otel_trace_id, otel_span_id,
    raw
FROM traces FINAL
SETTINGS do_not_merge_across_partitions_select_final = 0;
