-- +goose Up
-- As 00080, for the table that it left out.
ALTER TABLE dead_letter_marks MODIFY SETTING min_rows_to_fsync_after_merge = 1;
