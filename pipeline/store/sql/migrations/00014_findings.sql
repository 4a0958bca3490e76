-- +goose Up
-- One row a finding of a current verdict: what section 7.5 leaves out.
CREATE OR REPLACE VIEW findings AS
SELECT
    event_hour, tenant, agent_id, trace_id, digest, event_time, received_at, stream_sequence, session_id, card_id, verdict_id, recommended_action,
    item.1 AS type, item.2 AS severity, item.3 AS description, item.4 AS trace_field
FROM current_verdicts
ARRAY JOIN arrayZip(finding_types, finding_severities, finding_descriptions, finding_fields) AS item;
