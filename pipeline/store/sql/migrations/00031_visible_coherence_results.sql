-- +goose Up
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
