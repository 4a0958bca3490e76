-- +goose Up
-- A baseline of sessions names its sessions: a series that learns one does not keep the ids of its traces.
ALTER TABLE drift_baselines
    ADD COLUMN IF NOT EXISTS session_ids Array(String) CODEC(ZSTD(1));

-- Baselines, each once.
CREATE OR REPLACE VIEW visible_drift_baselines AS
SELECT
    tenant, agent_id, card_id, baseline_id_hex AS baseline_id, mode, engine_version, formed_at, received_at,
    traces, trace_ids, trace_digests,
    arrayZip(features.name, features.weight) AS features, escalation_rate, texts, session_ids
FROM drift_baselines FINAL
SETTINGS do_not_merge_across_partitions_select_final = 0;
