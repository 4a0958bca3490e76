-- +goose Up
-- The drift measurement of each trace, once.
CREATE OR REPLACE VIEW visible_drift_points AS
SELECT
    event_hour, tenant, agent_id, card_id, trace_id, trace_digest_hex AS digest, engine_version,
    event_time, received_at, stream_sequence, session_id, status, similarity, threshold, streak, methodology,
    mode, baseline_id_hex AS baseline_id
FROM drift_points FINAL
SETTINGS do_not_merge_across_partitions_select_final = 0;
