package database

import (
	"strings"
	"testing"
)

// Each trace has the verdicts that its name says, in order of time: n is clean, v has a violation, f a finding,
// u does not know the card, and r considers the revocation of the card. Each verdict has a copy in
// another partition. The copy of the first verdict is later than the second verdict.
const notableVerdicts = `INSERT INTO verdicts (event_hour, tenant, agent_id, trace_id, trace_digest, engine_version, profile, revoked_at, verified_at, event_time, received_at, retain_until, session_id, status,
	violations.type, violations.severity, violations.description, violations.trace_field, findings.type, findings.severity, findings.description, findings.trace_field)
	SETTINGS insert_distributed_sync = 1
SELECT intDiv(toUnixTimestamp(at), 3600), 'default', 'shop', trace_id, SHA256(trace_id), toString(n), 'spec', if(startsWith(kind, 'r'), at, toDateTime64(0, 9, 'UTC')), at + n + if(n = 1, copy * 100, 0),
	toDateTime64('2026-01-31 23:30:00', 9, 'UTC') AS at, at + copy * 86400, now() + 10000000, 's', if(kind = 'u', 'card_unknown', 'judged'),
	if(endsWith(kind, 'v'), ['MISSED_ESCALATION'], []) AS v, arrayMap(x -> 'HIGH', v), v, v, if(endsWith(kind, 'f'), ['DENIED_BUT_ACTED'], []) AS f, arrayMap(x -> 'LOW', f), f, f
FROM (SELECT *, arrayJoin([0, 1]) AS copy FROM (SELECT arrayJoin(['n', 'v', 'f', 'u', 'u-n', 'u-v', 'v-n', 'n-v', 'v-rn', 'rn-v', 'n-rv', 'rf-n', 'n-u']) AS trace_id, arrayJoin(arrayEnumerate(splitByChar('-', trace_id))) AS n, splitByChar('-', trace_id)[n] AS kind))`

// A verdict that another one replaced stays replaced in views that leave most verdicts unread.
func TestNotableVerdictsAreCurrent(t *testing.T) {
	d, _ := open(t)
	exec(t, d, notableVerdicts)
	const of = "SELECT arrayStringConcat(arraySort(groupArray(trace_id)), ' ') FROM "
	for query, want := range map[string]string{
		of + "current_verdicts":                                          "f n n-rv n-u n-v rf-n rn-v u u-n u-v v v-n v-rn",
		of + "notable_verdicts":                                          "f n-rv n-v rf-n u u-v v",
		of + "notable_verdicts WHERE status = 'card_unknown'":            "u",
		of + "violations":                                                "n-rv n-v u-v v",
		of + "findings":                                                  "f rf-n",
		of + "problems":                                                  "f n-rv n-v rf-n u-v v",
		of + "violations WHERE received_at < '2026-02-01'":               "n-rv n-v u-v v",
		of + "violations WHERE received_at >= '2026-02-01'":              "",
		of + "problems WHERE received_at < '2026-02-01'":                 "f n-rv n-v rf-n u-v v",
		of + "problems WHERE time >= '2026-01-31' AND agent_id = 'shop'": "f n-rv n-v rf-n u-v v",
		of + "current_verdicts WHERE notEmpty(violation_types) OR notEmpty(finding_types)": "f n-rv n-v rf-n u-v v",
	} {
		if got := one[string](t, d, query); got != want {
			t.Errorf("%s\nis   %s\nwant %s", query, got, want)
		}
	}
}

// A filter on the time of receipt, and on that of a session's verdict, reaches the tables below the choice of the
// current verdict: it decides which parts are read.
func TestTimeOfReceiptBoundsProblems(t *testing.T) {
	if onShards {
		t.Skip("the plan of a shard is not part of the plan")
	}
	d, _ := open(t)
	exec(t, d, notableVerdicts)
	exec(t, d, "INSERT INTO session_verdicts (tenant, agent_id, session_id, part, verified_at) VALUES ('default', 'shop', 's', 1, '2026-01-31 23:30:00')")
	for view, want := range map[string][]string{
		"violations": {"(received_at in "},
		"problems":   {"(received_at in ", "(received_at in ", "(verified_at in "},
	} {
		plan := one[string](t, d, "SELECT arrayStringConcat(groupArray(explain), '\n') FROM (EXPLAIN indexes = 1 SELECT * FROM "+view+" WHERE received_at >= '2026-02-01')")
		for _, condition := range want {
			_, rest, found := strings.Cut(plan, condition)
			if !found {
				t.Errorf("%s: no table is read with the condition %q (of %q)", view, condition, want)
			}
			plan = rest
		}
	}
}

// agents_daily reads of the verdicts only those that it counts.
func TestDailyFiguresReadVerdictsThatCount(t *testing.T) {
	if onShards {
		t.Skip("the plan of a shard is not part of the plan")
	}
	d, _ := open(t)
	exec(t, d, notableVerdicts)
	plan := one[string](t, d, "SELECT arrayStringConcat(groupArray(explain), '\n') FROM (EXPLAIN actions = 1 SELECT * FROM agents_daily)")
	for reading := range strings.SplitSeq(plan, "ReadFromMergeTree (") {
		if _, verdicts, found := strings.Cut(reading, ".verdicts)"); found && strings.Contains(verdicts, "FINAL: 1") {
			t.Errorf("all verdicts are read:\n%s", plan)
		}
	}
	const counted = "SELECT [sum(card_unknown), sum(problems)] FROM agents_daily"
	if got := one[[]uint64](t, d, counted); len(got) != 2 || got[0] != 1 || got[1] != 6 {
		t.Errorf("cards unknown and problems: %d, want [1 6]", got)
	}
}
