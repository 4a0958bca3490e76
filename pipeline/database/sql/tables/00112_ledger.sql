-- +goose Up
-- Entries of integrity ledgers: the operator's (ledger is empty), chained from the events of the
-- services, and the agents' own, verified on arrival.
CREATE TABLE IF NOT EXISTS ledger
(
    tenant     LowCardinality(String),
    ledger     String COMMENT 'agent id; empty for the operator''s' CODEC(ZSTD(1)),
    file       UInt64 COMMENT 'number of the operator''s file, from 1; 0 for an agent''s',
    stream_created DateTime64(9, 'UTC') COMMENT 'which stream sequence counts in',
    sequence   UInt64 COMMENT 'in that stream; 0 for the beginning of an operator''s file',
    seq        UInt64 COMMENT 'number within the chain',
    type       LowCardinality(String),
    data       String COMMENT 'canonical JSON; of what is no entry, the bytes received' CODEC(ZSTD(1)),
    hash       String COMMENT 'hexadecimal' CODEC(ZSTD(1)),
    at         DateTime64(9, 'UTC') COMMENT 'by the broker''s clock' CODEC(Delta, ZSTD(1)),
    fault      String COMMENT 'why the entry does not hold; empty when it does' CODEC(ZSTD(1))
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
