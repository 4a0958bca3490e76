-- +goose Up
-- Each session by its stored traces, their verdicts and its bundles.
CREATE OR REPLACE VIEW session_summary AS
SELECT
    t.tenant AS tenant, t.agent_id AS agent_id, t.session_id AS session_id,
    t.traces AS traces, t.first_event AS first_event, t.last_event AS last_event, t.ended AS ended, t.cost_cents AS cost_cents,
    v.violations AS violations, v.findings AS findings, v.card_unknown AS card_unknown,
    b.bundles AS bundles, b.sealed_traces AS sealed_traces
FROM
(
    SELECT tenant, agent_id, session_id, count() AS traces, min(event_time) AS first_event, max(event_time) AS last_event,
           max(session_end) AS ended, sum(cost_cents) AS cost_cents
    FROM traces FINAL
    GROUP BY tenant, agent_id, session_id
) AS t
LEFT JOIN
(
    SELECT tenant, agent_id, session_id, countIf(notEmpty(violation_types)) AS violations,
           countIf(notEmpty(finding_types)) AS findings, countIf(status = 'card_unknown') AS card_unknown
    FROM current_verdicts
    GROUP BY tenant, agent_id, session_id
) AS v ON t.tenant = v.tenant AND t.agent_id = v.agent_id AND t.session_id = v.session_id
LEFT JOIN
(
    SELECT tenant, agent_id, session_id, count() AS bundles, sum(trace_count) AS sealed_traces
    FROM bundles FINAL
    GROUP BY tenant, agent_id, session_id
) AS b ON t.tenant = b.tenant AND t.agent_id = b.agent_id AND t.session_id = b.session_id
SETTINGS do_not_merge_across_partitions_select_final = 0;
