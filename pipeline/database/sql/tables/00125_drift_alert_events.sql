-- +goose Up
-- An alert of drift opens, may be updated and closes. The table keeps each of these events, a revision of
-- the alert. A row of before this file is the only event of its alert: it has revision 0, which stands
-- for 1. A column that becomes part of the sort key cannot have another default.
ALTER TABLE drift_alerts
    ADD COLUMN IF NOT EXISTS revision UInt32,
    ADD COLUMN IF NOT EXISTS state LowCardinality(String) DEFAULT 'opened',
    ADD COLUMN IF NOT EXISTS opened_at DateTime64(9, 'UTC') DEFAULT detection_timestamp CODEC(Delta, ZSTD(1)),
    ADD COLUMN IF NOT EXISTS closed_at Nullable(DateTime64(9, 'UTC')),
    ADD COLUMN IF NOT EXISTS last_trace_id String DEFAULT trace_ids[-1] CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS count UInt32 DEFAULT length(trace_ids),
    ADD COLUMN IF NOT EXISTS strength Float64,
    ADD COLUMN IF NOT EXISTS measures Array(LowCardinality(String)),
    ADD COLUMN IF NOT EXISTS summary String CODEC(ZSTD(1)),
    MODIFY ORDER BY (event_hour, tenant, agent_id, alert_id, revision);

-- Drift alerts, each once, as its newest event says. A newer engine gives an alert another id; of two alerts
-- that the same trace opened, that of the newest engine is shown.
CREATE OR REPLACE VIEW visible_drift_alerts AS
SELECT
    tenant, agent_id, lower(hex(id)) AS alert_id, alert_type, card_id, detection_timestamp, received_at,
    similarity_score, sustained_traces, threshold, drift_direction, indicators AS specific_indicators,
    recommendation, trace_ids, engine_version, methodology, mode, baseline_id,
    state, toUInt32(greatest(event, 1)) AS revision, opened_at, closed_at, last_trace_id, count, strength, measures, summary
FROM
(
    SELECT
        tenant, agent_id, alert_id AS id, alert_type, card_id, detection_timestamp, received_at,
        similarity_score, sustained_traces, threshold, drift_direction,
        arrayZip(specific_indicators.indicator, specific_indicators.baseline,
                 specific_indicators.current, specific_indicators.description) AS indicators,
        recommendation, trace_ids, engine_version, methodology, mode, baseline_id_hex AS baseline_id,
        state, revision AS event, opened_at, closed_at, last_trace_id, count, strength, measures, summary,
        max(revision) OVER (PARTITION BY tenant, agent_id, alert_id) AS newest,
        first_value(last_trace_id) OVER (PARTITION BY tenant, agent_id, alert_id ORDER BY revision) AS opened_by
    FROM drift_alerts FINAL
)
WHERE event = newest
ORDER BY tenant, agent_id, card_id, opened_by, length(engine_version) DESC, engine_version DESC
LIMIT 1 BY tenant, agent_id, card_id, opened_by
SETTINGS do_not_merge_across_partitions_select_final = 0;

-- Every agent with a stored trace or a card, as it is now. Drift is measured for each card of an agent
-- separately; the agent's state is that of the card that its latest measured trace names. Traces are in
-- the order in which drift measures them (ADR 3): one that is dated ahead stands where it arrived. The agent
-- is drifting if its latest measured trace says so: an alert that an older engine opened and nobody closed
-- does not count. Points are stored before alerts, so for a moment a drift may have no alert.
CREATE OR REPLACE VIEW agents_now AS
SELECT
    a.tenant AS tenant, a.agent_id AS agent_id,
    if(t.traces = 0, NULL, toNullable(t.last_seen)) AS last_seen, if(t.traces = 0, NULL, toNullable(t.last_event)) AS last_event,
    t.traces_5m AS traces_5m, t.traces_1h AS traces_1h, t.traces_24h AS traces_24h, t.traces AS traces, p.card_unknown AS card_unknown,
    p.problems AS problems_24h, p.critical AS critical_24h, p.high AS high_24h, p.medium AS medium_24h, p.low AS low_24h,
    d.status = 'drift' AS drifting, if(drifting AND k.alert_id != '', toNullable(k.opened_at), NULL) AS drifting_since,
    if(drifting, k.drift_direction, '') AS drift_kind, if(drifting, k.summary, '') AS drift_summary, if(drifting, k.traces, 0) AS drift_traces,
    if(drifting, k.alert_id, '') AS drift_alert_id, d.status AS drift_status, d.similarity AS similarity, d.threshold AS drift_threshold,
    d.card_id AS drift_card_id, d.baseline_id AS baseline_id, d.mode AS baseline_mode,
    c.card_id AS card_id, if(c.card_id = '', NULL, toNullable(c.issued_at)) AS card_issued_at, c.expires_at AS card_expires_at
FROM
(
    SELECT tenant, agent_id FROM traces
    UNION DISTINCT
    SELECT tenant, agent_id FROM cards
) AS a
LEFT JOIN
(
    SELECT tenant, agent_id, count() AS traces, max(received_at) AS last_seen, max(event_time) AS last_event,
           countIf(received_at >= now64(9) - INTERVAL 5 MINUTE) AS traces_5m, countIf(received_at >= now64(9) - INTERVAL 1 HOUR) AS traces_1h,
           countIf(received_at >= now64(9) - INTERVAL 1 DAY) AS traces_24h
    FROM traces FINAL
    GROUP BY tenant, agent_id
) AS t ON a.tenant = t.tenant AND a.agent_id = t.agent_id
LEFT JOIN
(
    SELECT tenant, agent_id, sum(unjudged) AS card_unknown, sum(length(severities)) AS problems, sum(countEqual(severities, 'CRITICAL')) AS critical,
           sum(countEqual(severities, 'HIGH')) AS high, sum(countEqual(severities, 'MEDIUM')) AS medium, sum(countEqual(severities, 'LOW')) AS low
    FROM
    (
        SELECT tenant, agent_id, status = 'card_unknown' AS unjudged,
               if(received_at >= now64(9) - INTERVAL 1 DAY, arrayConcat(violation_severities, finding_severities), []) AS severities
        FROM current_verdicts
        UNION ALL
        SELECT tenant, agent_id, 0, finding_severities
        FROM visible_session_verdicts
        WHERE verified_at >= now64(9) - INTERVAL 1 DAY
    )
    GROUP BY tenant, agent_id
) AS p ON a.tenant = p.tenant AND a.agent_id = p.agent_id
LEFT JOIN
(
    SELECT tenant, agent_id, card_id, point.1 AS status, point.2 AS similarity, point.3 AS threshold, point.4 AS baseline_id, point.5 AS mode
    FROM
    (
        SELECT tenant, agent_id, card_id, max((least(event_time, received_at), stream_sequence)) AS at,
               argMax((status, similarity, threshold, baseline_id, mode), (least(event_time, received_at), stream_sequence)) AS point
        FROM visible_drift_points
        WHERE status NOT IN ('late', 'conflict')
        GROUP BY tenant, agent_id, card_id
    )
    ORDER BY tenant, agent_id, at DESC
    LIMIT 1 BY tenant, agent_id
) AS d ON a.tenant = d.tenant AND a.agent_id = d.agent_id
LEFT JOIN
(
    SELECT tenant, agent_id, card_id, newest.1 AS alert_id, newest.2 AS opened_at, newest.3 AS drift_direction, newest.4 AS summary, newest.5 AS traces
    FROM
    (
        SELECT tenant, agent_id, card_id,
               argMax((alert_id, opened_at, drift_direction, summary, count, state), (least(detection_timestamp, received_at), received_at)) AS newest
        FROM visible_drift_alerts
        GROUP BY tenant, agent_id, card_id
    )
    WHERE newest.6 != 'closed'
) AS k ON d.tenant = k.tenant AND d.agent_id = k.agent_id AND d.card_id = k.card_id
LEFT JOIN
(
    SELECT tenant, agent_id, card_id, issued_at, expires_at
    FROM visible_cards
    WHERE issued_at <= now64(9) AND (expires_at IS NULL OR expires_at >= now64(9)) AND (revoked_at IS NULL OR revoked_at > now64(9))
    ORDER BY tenant, agent_id, issued_at DESC, registered_at DESC
    LIMIT 1 BY tenant, agent_id
) AS c ON a.tenant = c.tenant AND a.agent_id = c.agent_id
SETTINGS do_not_merge_across_partitions_select_final = 0, join_use_nulls = 0;
