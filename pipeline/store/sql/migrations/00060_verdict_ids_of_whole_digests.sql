-- +goose Up
-- A verdict's id is over both digests whole. toString of a FixedString cuts NUL
-- bytes off its end, so that the id of such a digest was another than the one that
-- alerts are published under. The column is computed when it is read: verdicts
-- stored before have the right id from now on.
ALTER TABLE verdicts
    MODIFY COLUMN verdict_id String ALIAS lower(hex(SHA256(concat(trace_digest, card_digest, engine_version, '\0', profile,
        if(toUnixTimestamp64Nano(revoked_at) = 0, '', concat('\0', toString(toUnixTimestamp64Nano(revoked_at))))))));
