-- +goose Up
-- What operators did about dead letters. A letter itself is never changed.
CREATE TABLE IF NOT EXISTS dead_letter_marks
(
    tenant    LowCardinality(String),
    digest    FixedString(32) CODEC(NONE),
    marked_at DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    mark      LowCardinality(String),
    marked_by String CODEC(ZSTD(1)),
    note      String CODEC(ZSTD(1)),

    digest_hex String ALIAS lower(hex(digest))
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(marked_at)
ORDER BY (tenant, digest, marked_at, mark)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

-- Marks, each once.
CREATE OR REPLACE VIEW visible_dead_letter_marks AS
SELECT tenant, digest_hex AS digest, marked_at, mark, marked_by, note
FROM dead_letter_marks FINAL
SETTINGS do_not_merge_across_partitions_select_final = 0;
