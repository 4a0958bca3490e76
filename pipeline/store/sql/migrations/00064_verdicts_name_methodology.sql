-- +goose Up
-- Why the threshold of a verdict is not that of AAP section 8.3.
ALTER TABLE verdicts
    ADD COLUMN IF NOT EXISTS methodology LowCardinality(String);
