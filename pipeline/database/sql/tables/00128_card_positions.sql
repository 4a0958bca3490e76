-- +goose Up
-- Up to which revision of bucket cards, created at stream_created, every card is a row of table cards and
-- the traces that came before it are judged. The newest row counts. A service that starts reads only the
-- cards after it.
CREATE TABLE IF NOT EXISTS card_positions
(
    tenant         LowCardinality(String),
    stream_created DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    revision       UInt64,
    settled_at     DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(settled_at)
ORDER BY (tenant, stream_created)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;
