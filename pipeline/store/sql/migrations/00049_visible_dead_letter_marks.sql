-- +goose Up
-- Marks, each once.
CREATE OR REPLACE VIEW visible_dead_letter_marks AS
SELECT tenant, digest_hex AS digest, marked_at, mark, marked_by, note
FROM dead_letter_marks FINAL
SETTINGS do_not_merge_across_partitions_select_final = 0;
