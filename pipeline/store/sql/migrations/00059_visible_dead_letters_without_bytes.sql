-- +goose Up
-- Dead letters, each once, without their bytes: those are for whoever may read the
-- table's column raw.
CREATE OR REPLACE VIEW visible_dead_letters AS
SELECT
    tenant, stage, reason, origin_created, origin_sequence, received_at, subject, agent_id, trace_id,
    digest_hex AS digest, arrayZip(faults.pointer, faults.message) AS faults
FROM dead_letters FINAL
SETTINGS do_not_merge_across_partitions_select_final = 0;
