-- +goose Up
-- An alert says under which mode it was raised, and against which baseline.
ALTER TABLE drift_alerts
    ADD COLUMN IF NOT EXISTS mode LowCardinality(String) COMMENT 'first, rolling, pinned; empty before there were modes',
    ADD COLUMN IF NOT EXISTS baseline_id FixedString(32),
    ADD COLUMN IF NOT EXISTS baseline_id_hex String ALIAS lower(hex(baseline_id));
