-- +goose Up
-- A verdict that a revocation led to is another than the one before it, so the
-- revocation is part of its key: both stay, and neither hides the other. Verdicts
-- stored before have none, which is what the column's default says.
ALTER TABLE verdicts
    ADD COLUMN IF NOT EXISTS revoked_at DateTime64(9, 'UTC') COMMENT 'of the card, where that led to a finding; else 1970' CODEC(Delta, ZSTD(1)) AFTER profile,
    MODIFY ORDER BY (event_hour, tenant, agent_id, trace_id, trace_digest, card_digest, engine_version, profile, revoked_at),
    MODIFY COLUMN verdict_id String ALIAS lower(hex(SHA256(concat(toString(trace_digest), toString(card_digest), engine_version, '\0', profile,
        if(toUnixTimestamp64Nano(revoked_at) = 0, '', concat('\0', toString(toUnixTimestamp64Nano(revoked_at))))))));
