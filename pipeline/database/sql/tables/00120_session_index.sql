-- +goose Up
-- 200 sessions are sealed together, and up to 1,000 prior traces are looked up together. An index
-- that errs for one value in a hundred then errs for nearly every granule. Parts of before get the
-- new index when they are merged; nothing waits until the old one is removed from them.
ALTER TABLE traces
    DROP INDEX IF EXISTS session_id_bloom,
    DROP INDEX IF EXISTS trace_id_bloom
    SETTINGS alter_sync = 0;
ALTER TABLE traces
    ADD INDEX IF NOT EXISTS session_bloom session_id TYPE bloom_filter(0.0001) GRANULARITY 1,
    ADD INDEX IF NOT EXISTS trace_bloom trace_id TYPE bloom_filter(0.0001) GRANULARITY 1;
ALTER TABLE verdicts
    DROP INDEX IF EXISTS session_id_bloom
    SETTINGS alter_sync = 0;
ALTER TABLE verdicts
    ADD INDEX IF NOT EXISTS session_bloom session_id TYPE bloom_filter(0.0001) GRANULARITY 1;
