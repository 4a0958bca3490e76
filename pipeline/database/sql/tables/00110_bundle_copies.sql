-- +goose Up
-- Copies of bundles, and of the files next to them, that are known to be at another destination than
-- the bundle directory. If a copy is confirmed several times, the earliest row is kept.
CREATE TABLE IF NOT EXISTS bundle_copies
(
    tenant       LowCardinality(String),
    destination  LowCardinality(String),
    path         String CODEC(ZSTD(1)),
    sha256       FixedString(32) CODEC(NONE),
    bytes        UInt64,
    delivered_at DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    precedence   UInt64 MATERIALIZED bitNot(toUInt64(toUnixTimestamp64Nano(delivered_at))),

    sha256_hex   String ALIAS lower(hex(sha256))
)
ENGINE = ReplacingMergeTree(precedence)
PARTITION BY toYYYYMM(delivered_at)
ORDER BY (tenant, destination, path, sha256)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

-- Copies, each once.
CREATE OR REPLACE VIEW visible_bundle_copies AS
SELECT tenant, destination, path, sha256_hex AS sha256, bytes, delivered_at
FROM bundle_copies FINAL
SETTINGS do_not_merge_across_partitions_select_final = 0;
