-- +goose Up
-- Ledger entries, each once.
CREATE OR REPLACE VIEW visible_ledger AS
SELECT tenant, ledger, file, stream_created, sequence, seq, type, data, hash, at, fault
FROM ledger FINAL
SETTINGS do_not_merge_across_partitions_select_final = 0;
