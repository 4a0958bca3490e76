-- +goose Up
-- What each agent did on each day: as in 00124, but of the verdicts on traces and sessions only those with a problem or
-- without a card are read. A filter on day reads the traces and verdicts of these days only.
CREATE OR REPLACE VIEW agents_daily AS
SELECT
    tenant, day, agent_id, sum(stored) AS traces, sum(acted) AS executed, sum(errors) AS failed, sum(asked) AS escalated, sum(cost) AS cost_cents,
    sum(opened) AS sessions, sum(unjudged) AS card_unknown, sum(found) AS problems, sum(c) AS critical, sum(h) AS high, sum(m) AS medium, sum(l) AS low
FROM
(
    SELECT tenant, toDate(intDiv(event_hour, 24)) AS day, agent_id, count() AS stored, countIf(action_type = 'execute') AS acted,
           countIf(execution_error != '') AS errors, countIf(escalation_required) AS asked, sum(cost_cents) AS cost, uniqExact(session_id) AS opened,
           toUInt64(0) AS unjudged, toUInt64(0) AS found, toUInt64(0) AS c, toUInt64(0) AS h, toUInt64(0) AS m, toUInt64(0) AS l
    FROM traces FINAL
    GROUP BY tenant, day, agent_id
    UNION ALL
    SELECT tenant, toDate(intDiv(event_hour, 24)) AS day, agent_id, 0, 0, 0, 0, 0, 0, countIf(status = 'card_unknown'), sum(length(severities)), sum(countEqual(severities, 'CRITICAL')),
           sum(countEqual(severities, 'HIGH')), sum(countEqual(severities, 'MEDIUM')), sum(countEqual(severities, 'LOW'))
    FROM
    (
        SELECT tenant, event_hour, agent_id, status, arrayConcat(violation_severities, finding_severities) AS severities
        FROM notable_verdicts
    )
    GROUP BY tenant, day, agent_id
    UNION ALL
    SELECT f.tenant AS tenant, toDate(intDiv(toUnixTimestamp64Nano(if(b.part = 0, f.verified_at, b.last_event)), 86400000000000)) AS day, f.agent_id AS agent_id,
           0, 0, 0, 0, 0, 0, 0, sum(length(f.finding_severities)), sum(countEqual(f.finding_severities, 'CRITICAL')),
           sum(countEqual(f.finding_severities, 'HIGH')), sum(countEqual(f.finding_severities, 'MEDIUM')), sum(countEqual(f.finding_severities, 'LOW'))
    FROM (SELECT tenant, agent_id, session_id, part, verified_at, finding_severities FROM visible_session_verdicts WHERE notEmpty(finding_severities)) AS f
    LEFT JOIN
    (
        SELECT tenant, agent_id, session_id, part, max(last_event) AS last_event
        FROM bundles
        WHERE sipHash64(session_id) GLOBAL IN (SELECT sipHash64(session_id) FROM session_verdicts WHERE notEmpty(findings.type))
        GROUP BY tenant, agent_id, session_id, part
    ) AS b ON f.tenant = b.tenant AND f.agent_id = b.agent_id AND f.session_id = b.session_id AND f.part = b.part
    GROUP BY tenant, day, agent_id
)
GROUP BY tenant, day, agent_id
SETTINGS do_not_merge_across_partitions_select_final = 0, join_use_nulls = 0;
