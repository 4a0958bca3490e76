-- +goose Up
-- Sealed bundles, each once.
CREATE OR REPLACE VIEW visible_bundles AS
SELECT
    tenant, agent_id, session_id, part, last_part, sha256_hex AS sha256, path, bytes, action_count, trace_count,
    redactions, first_event, last_event, first_sequence, last_sequence, trace_ids, chain_hash, previous_sha256,
    key_id, reason, exported_at
FROM bundles FINAL
SETTINGS do_not_merge_across_partitions_select_final = 0;
