package database

import (
	"bytes"
	"strings"
	"testing"
)

// The rows of TestAnswersOfViews. Two tenants have an agent, a session and a trace with the same names.
// Of session kept, retention has removed the four traces that its bundle has. Somebody removed all rows of
// session gone, so it is held; session done was held once.
const (
	answersTraces = `INSERT INTO traces (event_hour, tenant, agent_id, trace_id, digest, event_time, received_at, retain_until, stream_sequence, card_id, session_id, action_type, cost_cents)
SELECT intDiv(toUnixTimestamp(event_time), 3600), tenant, agent_id, trace_id, SHA256(trace_id), event_time, received_at, now() + 10000000, stream_sequence, 'c', session_id, 'execute', 5
FROM VALUES('tenant String, agent_id String, session_id String, trace_id String, stream_sequence UInt64, event_time DateTime64(9, \'UTC\'), received_at DateTime64(9, \'UTC\')',
	('default', 'shop', 'done',  't-1', 1, '2026-01-01 10:00:00', '2026-01-01 10:00:01'),
	('default', 'shop', 'kept',  't-2', 11, '2026-01-01 11:00:00', '2026-01-01 11:00:01'),
	('default', 'shop', 'night', 't-3', 12, '2026-01-01 23:59:59.999999999', '2026-01-02 00:00:01'),
	('default', 'shop', 'night', 't-4', 13, '2026-01-02 00:00:00', '2026-01-02 00:00:01'),
	('other',   'shop', 'done',  't-1', 1, '2026-01-01 10:00:00', '2026-01-01 10:00:01'))`

	answersBundles = `INSERT INTO bundles (tenant, agent_id, session_id, part, sha256, path, trace_count, last_sequence, exported_at)
SELECT 'default', 'shop', session_id, 1, SHA256(session_id), session_id, trace_count, last_sequence, '2026-01-01 12:00:00'
FROM VALUES('session_id String, trace_count UInt64, last_sequence UInt64', ('done', 1, 1), ('kept', 4, 10))`

	answersSessions = `INSERT INTO sessions (tenant, agent_id, session_id, version, status, reason, first_event, last_event) VALUES
	('default', 'shop', 'done', 1, 'held', 'why', '2026-01-01 10:00:00', '2026-01-01 10:00:00'), ('default', 'shop', 'done', 2, 'sealed', 'ended', '2026-01-01 10:00:00', '2026-01-01 10:00:00'),
	('default', 'shop', 'gone', 1, 'held', '3 missing', '2026-01-01 10:00:00', '2026-01-01 11:00:00')`

	// Trace t-1 of tenant default was judged when its card was registered, two days after its arrival.
	answersVerdicts = `INSERT INTO verdicts (event_hour, tenant, agent_id, trace_id, trace_digest, card_digest, engine_version, profile, verified_at, event_time, received_at, retain_until, session_id, card_id, status,
	violations.type, violations.severity, violations.description, violations.trace_field, findings.type, findings.severity, findings.description, findings.trace_field)
SELECT intDiv(toUnixTimestamp(event_time), 3600), tenant, 'shop', 't-1', SHA256('t-1'), SHA256(status), 'e', 'spec', verified_at, toDateTime64('2026-01-01 10:00:00', 9, 'UTC') AS event_time, event_time + 1, now() + 10000000, 'done', 'c', status,
	['MISSED_ESCALATION', 'UNDECLARED_VALUE'], ['HIGH', 'MEDIUM'], ['', ''], ['', ''], ['DENIED_BUT_ACTED', 'OTHER'], ['CRITICAL', 'LOW'], ['', ''], ['', '']
FROM VALUES('tenant String, status String, verified_at DateTime64(9, \'UTC\')', ('default', 'judged', '2026-01-03 10:00:00'))
UNION ALL
SELECT intDiv(toUnixTimestamp(event_time), 3600), tenant, 'shop', 't-1', SHA256('t-1'), '', 'e', 'spec', event_time + 2, toDateTime64('2026-01-01 10:00:00', 9, 'UTC') AS event_time, event_time + 1, now() + 10000000, 'done', 'c', 'card_unknown',
	[], [], [], [], [], [], [], []
FROM VALUES('tenant String', 'default', 'other')`

	// The drift of tenant default has ended: the low trace that is dated 2099 came before the last one. An
	// older engine found that every trace drifts. The drift under card before never ended.
	answersPoints = `INSERT INTO drift_points (event_hour, tenant, agent_id, card_id, trace_id, trace_digest, engine_version, event_time, received_at, retain_until, stream_sequence, status, similarity, streak)
SELECT intDiv(toUnixTimestamp(event_time), 3600), tenant, 'shop', if(trace_id = 't-0', 'before', 'c'), trace_id, SHA256(trace_id), engine, event_time, received_at, now() + 10000000, stream_sequence, if(old, 'drift', status), 0.5, if(old, 9, streak)
FROM (SELECT arrayJoin(['plumbline-drift/9 (x)', 'plumbline-drift/10 (x)']) AS engine, engine = 'plumbline-drift/9 (x)' AS old, *
FROM VALUES('tenant String, trace_id String, stream_sequence UInt64, status String, streak UInt32, event_time DateTime64(9, \'UTC\'), received_at DateTime64(9, \'UTC\')',
	('default', 't-0', 0,  'drift', 3,     '2026-01-01 09:00:00', '2026-01-01 09:00:00'),
	('default', 't-1', 1,  'drift', 1,     '2026-01-01 10:00:00', '2026-01-01 10:00:01'),
	('default', 't-3', 12, 'drift', 3,     '2099-01-01 00:00:00', '2026-01-02 00:00:01'),
	('default', 't-4', 13, 'recovered', 0, '2026-01-02 00:00:02', '2026-01-02 00:00:03'),
	('other',   't-1', 1,  'low', 1,       '2026-01-01 10:00:00', '2026-01-01 10:00:01'),
	('other',   't-2', 2,  'drift', 2,     '2099-01-01 00:00:00', '2026-01-01 10:00:02'),
	('other',   't-3', 3,  'drift', 3,     '2026-01-01 10:00:03', '2026-01-01 10:00:04')))`

	// Engine 9 knew no events of alerts: its rows have none of their columns, and its alert on t-0 was never
	// closed. It found the alert that t-1 opened, too. In tenant other, the closed alert's last event is dated
	// ahead, and so is one of the open alert.
	answersOldAlerts = `INSERT INTO drift_alerts (event_hour, tenant, agent_id, alert_id, card_id, detection_timestamp, received_at, retain_until, trace_ids, engine_version)
SELECT intDiv(toUnixTimestamp(at), 3600), 'default', 'shop', SHA256(trace_id), 'c', at, at, now() + 10000000, ['before', trace_id], 'plumbline-drift/9 (x)'
FROM VALUES('trace_id String, at DateTime64(9, \'UTC\')', ('t-0', '2026-01-01 09:00:00'), ('t-1', '2026-01-01 10:00:00'))`
	answersAlerts = `INSERT INTO drift_alerts (event_hour, tenant, agent_id, alert_id, card_id, detection_timestamp, received_at, retain_until, drift_direction, trace_ids, engine_version,
	revision, state, opened_at, closed_at, last_trace_id, count, summary)
SELECT intDiv(toUnixTimestamp(opened_at), 3600), tenant, 'shop', SHA256(concat(tenant, toString(opened_at))), 'c', at, received_at, now() + 10000000, 'value_drift', [last], 'plumbline-drift/10 (x)',
	revision, state, opened_at, if(state = 'closed', at, NULL), last, traces, concat('as of ', toString(revision))
FROM VALUES('tenant String, revision UInt32, state String, last String, traces UInt32, opened_at DateTime64(9, \'UTC\'), at DateTime64(9, \'UTC\'), received_at DateTime64(9, \'UTC\')',
	('default', 1, 'opened',  't-1', 3, '2026-01-01 10:00:00', '2026-01-01 10:00:00', '2026-01-01 10:00:01'),
	('default', 2, 'updated', 't-3', 4, '2026-01-01 10:00:00', '2099-01-01 00:00:00', '2026-01-02 00:00:01'),
	('default', 3, 'closed',  't-3', 4, '2026-01-01 10:00:00', '2026-01-02 00:00:02', '2026-01-02 00:00:03'),
	('other',   1, 'opened',  't-0', 3, '2026-01-01 08:00:00', '2026-01-01 08:00:00', '2026-01-01 08:00:01'),
	('other',   2, 'closed',  't-0', 3, '2026-01-01 08:00:00', '2099-01-01 00:00:00', '2026-01-01 09:00:00'),
	('other',   1, 'opened',  't-2', 1, '2026-01-01 10:00:02', '2026-01-01 10:00:02', '2026-01-01 10:00:02'),
	('other',   2, 'updated', 't-3', 2, '2026-01-01 10:00:02', '2026-01-01 10:00:03', '2026-01-01 10:00:04'))`

	// Engine 9 found the loop of t-4, too. The loop of t-1 is in a sealed part, in tenant other it is not.
	answersLoops = `INSERT INTO loop_alerts (event_hour, tenant, agent_id, alert_id, card_id, session_id, detection_timestamp, received_at, retain_until, stream_sequence, severity, description, trace_id, trace_digest, engine_version)
SELECT intDiv(toUnixTimestamp(at), 3600), tenant, 'shop', SHA256(concat(trace_id, engine)), 'c', session_id, at, at, now() + 10000000, stream_sequence, 'MEDIUM', engine, trace_id, SHA256(trace_id), engine
FROM VALUES('tenant String, session_id String, trace_id String, stream_sequence UInt64, engine String, at DateTime64(9, \'UTC\')',
	('default', 'done',  't-1', 1,  'e/9 (x)',  '2026-01-01 10:00:00'),
	('default', 'night', 't-4', 13, 'e/9 (x)',  '2026-01-02 00:00:00'),
	('default', 'night', 't-4', 13, 'e/10 (x)', '2026-01-02 00:00:00'),
	('other',   'done',  't-1', 1,  'e/10 (x)', '2026-01-01 10:00:00'))`

	answersCards = `INSERT INTO cards (tenant, agent_id, card_id, digest, issued_at) VALUES ('default', 'shop', 'c', '', '2025-01-01 00:00:00')`
)

// answersWanted are the answers, as plumbline sql asks for them.
var answersWanted = []struct{ query, want string }{
	{"SELECT tenant, session_id, traces, sealed_traces, unsealed_traces, concat(state, if(held_reason = '', '', ' '), held_reason) FROM session_summary ORDER BY ALL", `
default done 1 1 0 sealed
default gone 0 0 0 held 3 missing
default kept 1 4 1 open
default night 2 0 2 open
other done 1 0 1 open`},
	{"SELECT tenant, day, traces, sessions, cost_cents, card_unknown, problems FROM agents_daily ORDER BY ALL", `
default 2026-01-01 3 3 15 0 4
default 2026-01-02 1 1 5 0 0
other 2026-01-01 1 1 5 1 0`},
	{"SELECT tenant, severity, type, received_at = time + 1, found_at FROM problems ORDER BY severity DESC", `
default CRITICAL DENIED_BUT_ACTED 1 2026-01-03 10:00:00.000000000
default HIGH MISSED_ESCALATION 1 2026-01-03 10:00:00.000000000
default MEDIUM UNDECLARED_VALUE 1 2026-01-03 10:00:00.000000000
default LOW OTHER 1 2026-01-03 10:00:00.000000000`},
	{"SELECT count() FROM problems WHERE severity >= 'HIGH' UNION ALL SELECT sum(problems) FROM problems_daily WHERE severity >= 'HIGH'", "\n2\n2"},
	{"SELECT (SELECT count() FROM violations WHERE severity < 'HIGH'), (SELECT count() FROM findings WHERE severity = 'CRITICAL')", "\n1 1"},
	{"SELECT tenant, traces, card_unknown, card_id, drift_status, drifting_since FROM agents_now ORDER BY ALL", `
default 4 0 c recovered \N
other 1 1  drift 2026-01-01 10:00:02.000000000`},
	{"SELECT tenant, drifting, drift_kind, drift_traces, drift_summary FROM agents_now ORDER BY ALL", `
default 0  0 
other 1 value_drift 2 as of 2`},
	{"SELECT tenant, agent_id, drifting, drifting_cards, open_loops FROM agents_now ORDER BY ALL", "\ndefault shop 0 1 1\nother shop 1 1 1"},
	{"SELECT tenant, session_id, trace_id, sealed, description, severity < 'HIGH' FROM visible_loop_alerts ORDER BY ALL", `
default done t-1 1 e/9 (x) 1
default night t-4 0 e/10 (x) 1
other done t-1 0 e/10 (x) 1`},
	{"SELECT tenant, opened_at, state, revision, last_trace_id, count, summary, closed_at FROM visible_drift_alerts ORDER BY ALL", `
default 2026-01-01 09:00:00.000000000 opened 1 t-0 2  \N
default 2026-01-01 10:00:00.000000000 closed 3 t-3 4 as of 3 2026-01-02 00:00:02.000000000
other 2026-01-01 08:00:00.000000000 closed 2 t-0 3 as of 2 2099-01-01 00:00:00.000000000
other 2026-01-01 10:00:02.000000000 updated 2 t-3 2 as of 2 \N`},
	{"SELECT tenant, count(), any(engine_version) FROM visible_drift_points GROUP BY tenant ORDER BY ALL", `
default 4 plumbline-drift/10 (x)
other 3 plumbline-drift/10 (x)`},
	{"SELECT tenant, card_id, revoked_at, revocation_reason FROM visible_cards", "\ndefault c \\N "},
	{"SELECT t.tenant, t.trace_id FROM visible_traces AS t LEFT JOIN visible_cards AS c ON t.tenant = c.tenant AND t.card_id = c.card_id WHERE c.card_id IS NULL", "\nother t-1"},
}

// The views are right where simple views are wrong: with copies of rows, names that two tenants have,
// retention, midnight, clocks that are wrong, late verdicts and several engines.
func TestAnswersOfViews(t *testing.T) {
	if onShards {
		t.Skip("the rows are written as one server's")
	}
	d, dsn := open(t)
	for _, statement := range []string{answersTraces, answersBundles, answersSessions, answersVerdicts, answersPoints, answersOldAlerts, answersAlerts, answersLoops, answersCards} {
		exec(t, d, statement)
	}
	h := openHTTP(t, dsn)
	answer := func(query string) string {
		t.Helper()
		var out bytes.Buffer
		if err := h.Run(t.Context(), Statement{Text: query, Format: "TSVRaw"}, &out); err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll("\n"+strings.TrimSuffix(out.String(), "\n"), "\t", " ")
	}
	for _, stored := range []string{"once", "twice"} {
		for _, c := range answersWanted {
			if got := answer(c.query); got != c.want {
				t.Errorf("every row is stored %s. %s\nthe answer is%s\nwant%s", stored, c.query, got, c.want)
			}
		}
		for _, table := range Tables {
			exec(t, d, "SYSTEM STOP MERGES "+table)
			exec(t, d, "INSERT INTO "+table+" SELECT * FROM "+table)
		}
	}
	for _, query := range []string{"problems WHERE severity = 'critical'", "problems WHERE source IN ('violations')", "session_summary WHERE verdict = 'DENY'", "session_summary WHERE state = 'unsealed'"} {
		err := h.Run(t.Context(), Statement{Text: "SELECT count() FROM " + query}, new(bytes.Buffer))
		if err == nil || !strings.Contains(err.Error(), "Unknown element") {
			t.Errorf("%s has a word that does not exist: %v", query, err)
		}
	}
	if err := h.OnlyTenant("other"); err != nil {
		t.Fatal(err)
	}
	const counts = "SELECT (SELECT count() FROM traces), (SELECT count() FROM visible_traces), (SELECT count() FROM problems), (SELECT count() FROM session_summary), (SELECT sum(traces) FROM agents_now)"
	if got := answer(counts); got != "\n1 1 0 1 1" {
		t.Errorf("of one tenant: %s", got)
	}
}
