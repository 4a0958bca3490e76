CREATE TABLE IF NOT EXISTS floor
(
    stream_sequence UInt64 CODEC(Delta, ZSTD(1)),
    raw             String CODEC(ZSTD(1))
)
ENGINE = MergeTree
ORDER BY stream_sequence
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
