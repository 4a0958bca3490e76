-- +goose Up
-- One row a finding of a verdict on a session. Where it is about no single trace,
-- trace_id is empty.
CREATE OR REPLACE VIEW session_findings AS
SELECT
    tenant, agent_id, session_id, part, verified_at, recommended_action,
    item.1 AS type, item.2 AS severity, item.3 AS description, item.4 AS trace_id, item.5 AS trace_field
FROM visible_session_verdicts
ARRAY JOIN arrayZip(finding_types, finding_severities, finding_descriptions, finding_traces, finding_fields) AS item;
