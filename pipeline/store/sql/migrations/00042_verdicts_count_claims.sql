-- +goose Up
-- How many claims of the selection reasoning are tagged [G] and [I]
-- (message-integrity RFC, section 6).
ALTER TABLE verdicts
    ADD COLUMN IF NOT EXISTS grounded_claims UInt32 CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS inferred_claims UInt32 CODEC(ZSTD(1));
