-- +goose Up
-- One row a warning of a current verdict.
CREATE OR REPLACE VIEW warnings AS
SELECT
    event_hour, tenant, agent_id, trace_id, digest, event_time, received_at, stream_sequence, session_id, card_id, verdict_id, recommended_action,
    item.1 AS type, item.2 AS description, item.3 AS trace_field
FROM current_verdicts
ARRAY JOIN arrayZip(warning_types, warning_descriptions, warning_fields) AS item;
