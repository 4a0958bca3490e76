-- +goose Up
-- Entries of integrity ledgers: the operator's (ledger is empty), chained from the events of the
-- services, and the agents' own, verified on arrival.
CREATE TABLE IF NOT EXISTS ledger
(
    tenant     LowCardinality(String),
    ledger     String CODEC(ZSTD(1)),
    file       UInt64,
    stream_created DateTime64(9, 'UTC'),
    sequence   UInt64,
    seq        UInt64,
    type       LowCardinality(String),
    data       String CODEC(ZSTD(1)),
    hash       String CODEC(ZSTD(1)),
    at         DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    fault      String CODEC(ZSTD(1))
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(at)
ORDER BY (tenant, ledger, file, stream_created, sequence, seq)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

-- Ledger entries, each once.
CREATE OR REPLACE VIEW visible_ledger AS
SELECT tenant, ledger, file, stream_created, sequence, seq, type, data, hash, at, fault
FROM ledger FINAL
SETTINGS do_not_merge_across_partitions_select_final = 0;
