-- +goose Up
-- The state from which the drift stage continues: the newest for each (agent, card). A writer with an
-- older state is harmless, because its rows have a lower version or the same content.
CREATE TABLE IF NOT EXISTS drift_state
(
    tenant           LowCardinality(String),
    stream_created   DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    stream_partition UInt16,
    agent_id         String CODEC(ZSTD(1)),
    card_id          String CODEC(ZSTD(1)),

    version          UInt64,
    applied          UInt64,
    applied_above    Array(UInt64),
    last_event_time  DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    state            String CODEC(ZSTD(1)),

    INDEX agent_id_bloom agent_id TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (tenant, stream_created, stream_partition, agent_id, card_id)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, index_granularity = 16;
