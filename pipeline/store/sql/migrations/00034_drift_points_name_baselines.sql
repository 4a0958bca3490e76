-- +goose Up
-- A point says under which mode it was measured, and against which baseline.
ALTER TABLE drift_points
    ADD COLUMN IF NOT EXISTS mode LowCardinality(String) COMMENT 'first, rolling, pinned; empty before there were modes',
    ADD COLUMN IF NOT EXISTS baseline_id FixedString(32) COMMENT 'zero where the trace was not compared' CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS baseline_id_hex String ALIAS lower(hex(baseline_id));
