-- +goose Up
-- What the exporter knows of each session, the newest word.
CREATE OR REPLACE VIEW visible_sessions AS
SELECT
    tenant, agent_id, session_id, status, reason, traces, bundles, ended,
    first_event, last_event, first_sequence, last_sequence, updated_at
FROM sessions FINAL;
