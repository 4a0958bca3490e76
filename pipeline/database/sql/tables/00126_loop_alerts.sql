-- +goose Up
-- Alerts about loops: a session that may still run repeats the same action. There is one for each run of
-- equal actions, and a replay gives it the same id.
CREATE TABLE IF NOT EXISTS loop_alerts
(
    event_hour          UInt32,
    tenant              LowCardinality(String),
    agent_id            String CODEC(ZSTD(1)),
    alert_id            FixedString(32) CODEC(NONE),

    alert_type          LowCardinality(String),
    card_id             String CODEC(ZSTD(1)),
    session_id          String CODEC(ZSTD(1)),
    detection_timestamp DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    received_at         DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    arrival             UInt64 MATERIALIZED bitNot(toUInt64(toUnixTimestamp64Nano(received_at))),
    retain_until        DateTime('UTC'),
    stream_created      DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    stream_sequence     UInt64,
    type                LowCardinality(String),
    severity            LowCardinality(String),
    description         String CODEC(ZSTD(1)),
    trace_id            String CODEC(ZSTD(1)),
    trace_field         LowCardinality(String),
    trace_digest        FixedString(32) CODEC(NONE),
    engine_version      LowCardinality(String),

    alert_id_hex        String ALIAS lower(hex(alert_id)),
    trace_digest_hex    String ALIAS lower(hex(trace_digest)),

    INDEX agent_id_bloom agent_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX session_id_bloom session_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX trace_id_bloom trace_id TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = ReplacingMergeTree(arrival)
PARTITION BY toYYYYMM(received_at)
ORDER BY (event_hour, tenant, agent_id, alert_id)
TTL retain_until
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

-- Alerts about loops, each once, and whether the trace is sealed: then the session's verdict has the finding,
-- and view problems shows it. A newer engine gives the alert about a trace another id; the newest is shown.
CREATE OR REPLACE VIEW visible_loop_alerts AS
SELECT
    l.tenant AS tenant, l.agent_id AS agent_id, l.alert_id AS alert_id, alert_type, card_id, l.session_id AS session_id,
    detection_timestamp, received_at, stream_sequence, type, CAST(severity, 'Enum8(\'\' = 0, \'LOW\' = 1, \'MEDIUM\' = 2, \'HIGH\' = 3, \'CRITICAL\' = 4)') AS severity,
    description, trace_id, trace_field, digest, engine_version, b.reached >= stream_sequence AS sealed
FROM
(
    SELECT
        tenant, agent_id, alert_id_hex AS alert_id, alert_type, card_id, session_id, detection_timestamp, received_at, stream_sequence,
        type, severity, description, trace_id, trace_field, trace_digest_hex AS digest, engine_version
    FROM loop_alerts FINAL
    ORDER BY tenant, agent_id, card_id, session_id, trace_digest, length(engine_version) DESC, engine_version DESC
    LIMIT 1 BY tenant, agent_id, card_id, session_id, trace_digest
) AS l
LEFT JOIN
(
    SELECT tenant, agent_id, session_id, max(last_sequence) AS reached
    FROM bundles
    WHERE (tenant, agent_id, session_id) GLOBAL IN (SELECT tenant, agent_id, session_id FROM loop_alerts)
    GROUP BY tenant, agent_id, session_id
) AS b ON l.tenant = b.tenant AND l.agent_id = b.agent_id AND l.session_id = b.session_id
SETTINGS do_not_merge_across_partitions_select_final = 0, join_use_nulls = 0;

-- Every agent with a stored trace or a card, as it is now. Drift is measured for each card of an agent
-- separately; the agent's state is that of the card that its latest measured trace names. Traces are in
-- the order in which drift measures them (ADR 3): one that is dated ahead stands where it arrived. The agent
-- is drifting if its latest measured trace says so: an alert that an older engine opened and nobody closed
-- does not count. Points are stored before alerts, so for a moment a drift may have no alert. An agent that
-- names another card while it drifts leaves the open alert behind: drifting_cards counts it. Loops of sealed
-- sessions are problems.
CREATE OR REPLACE VIEW agents_now AS
SELECT
    a.tenant AS tenant, a.agent_id AS agent_id,
    if(t.traces = 0, NULL, toNullable(t.last_seen)) AS last_seen, if(t.traces = 0, NULL, toNullable(t.last_event)) AS last_event,
    t.traces_5m AS traces_5m, t.traces_1h AS traces_1h, t.traces_24h AS traces_24h, t.traces AS traces, p.card_unknown AS card_unknown,
    p.problems AS problems_24h, p.critical AS critical_24h, p.high AS high_24h, p.medium AS medium_24h, p.low AS low_24h,
    d.status = 'drift' AS drifting, if(drifting AND k.alert_id != '', toNullable(k.opened_at), NULL) AS drifting_since,
    if(drifting, k.drift_direction, '') AS drift_kind, if(drifting, k.summary, '') AS drift_summary, if(drifting, k.traces, 0) AS drift_traces,
    if(drifting, k.alert_id, '') AS drift_alert_id, d.status AS drift_status, d.similarity AS similarity, d.threshold AS drift_threshold,
    d.card_id AS drift_card_id, d.baseline_id AS baseline_id, d.mode AS baseline_mode, d.drifting_cards AS drifting_cards, l.loops AS open_loops,
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
    SELECT tenant, agent_id, card_id, point.1 AS status, point.2 AS similarity, point.3 AS threshold, point.4 AS baseline_id, point.5 AS mode,
           countIf(point.1 = 'drift') OVER (PARTITION BY tenant, agent_id) AS drifting_cards
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
    SELECT tenant, agent_id, countIf(NOT sealed) AS loops
    FROM visible_loop_alerts
    GROUP BY tenant, agent_id
) AS l ON a.tenant = l.tenant AND a.agent_id = l.agent_id
LEFT JOIN
(
    SELECT tenant, agent_id, card_id, issued_at, expires_at
    FROM visible_cards
    WHERE issued_at <= now64(9) AND (expires_at IS NULL OR expires_at >= now64(9)) AND (revoked_at IS NULL OR revoked_at > now64(9))
    ORDER BY tenant, agent_id, issued_at DESC, registered_at DESC
    LIMIT 1 BY tenant, agent_id
) AS c ON a.tenant = c.tenant AND a.agent_id = c.agent_id
SETTINGS do_not_merge_across_partitions_select_final = 0, join_use_nulls = 0;
