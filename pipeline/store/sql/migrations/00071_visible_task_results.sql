-- +goose Up
-- Results of tasks, each once.
CREATE OR REPLACE VIEW visible_task_results AS
SELECT
    tenant, initiator_agent_id, responder_agent_id, request_id, transport, finished_at, received_at,
    responder_card_id, status, result, trace_ids, session_id, key_id, digest_hex AS digest, message
FROM task_results FINAL
SETTINGS do_not_merge_across_partitions_select_final = 0;
