-- +goose Up
-- Every trace once, with what is read out of raw as columns.
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
