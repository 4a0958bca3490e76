-- +goose Up
-- One row a violation of a current verdict (AAP section 7.5).
CREATE OR REPLACE VIEW violations AS
SELECT
    event_hour, tenant, agent_id, trace_id, digest, event_time, received_at, stream_sequence, session_id, card_id, verdict_id, recommended_action,
    item.1 AS type, item.2 AS severity, item.3 AS description, item.4 AS trace_field
FROM current_verdicts
ARRAY JOIN arrayZip(violation_types, violation_severities, violation_descriptions, violation_fields) AS item;
