-- +goose Up
-- Copies, each once.
CREATE OR REPLACE VIEW visible_bundle_copies AS
SELECT tenant, destination, path, sha256_hex AS sha256, bytes, delivered_at
FROM bundle_copies FINAL
SETTINGS do_not_merge_across_partitions_select_final = 0;
