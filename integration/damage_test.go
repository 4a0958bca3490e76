package integration_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/plumbline/plumbline/integration/checker"
	"github.com/plumbline/plumbline/pipeline/events"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// damages are changes to a site whose session "untouched" is sealed, and which has a copy
// of its table of traces. Each breaks a different invariant.
var damages = []struct{ do, says string }{
	{ // a row that was acknowledged is gone
		"ALTER TABLE traces DELETE WHERE trace_id = 'untouched-0'" + at,
		"was acknowledged and is neither a row nor a dead letter",
	},
	{ // another acknowledged trace is also a dead letter
		"INSERT INTO dead_letters (event_hour, tenant, stage, origin_created, origin_sequence, digest, received_at, retain_until, agent_id, reason)" +
			" SELECT event_hour, tenant, 'verifier', stream_created, stream_sequence, digest, received_at, retain_until, agent_id, 'forged' FROM kept WHERE trace_id = 'untouched-1'",
		"is 1 rows and 1 dead letters",
	},
	{ // a part of a session is sealed twice
		"INSERT INTO bundles SELECT * REPLACE(CAST(repeat('a', 32), 'FixedString(32)') AS sha256) FROM bundles WHERE session_id = 'untouched'",
		`session "untouched" of agent a has part 1 twice`,
	},
	{ // a bundle continues one that does not exist
		"INSERT INTO bundles SELECT * REPLACE(2 AS part, CAST(repeat('b', 32), 'FixedString(32)') AS sha256, repeat('cd', 32) AS previous_sha256)" +
			" FROM bundles WHERE session_id = 'edited'",
		`part 2 of session "edited" of agent a continues`,
	},
	{ // the traces of that bundle are in two bundles
		"", "trace edited-1 of agent a is sealed 2 times and stored 1 times",
	},
	{ // the ledger claims neither bundle
		"", "the ledger does not claim bundle " + strings.Repeat("62", 32),
	},
	{ // a point belongs to no trace
		"INSERT INTO drift_points SELECT * REPLACE('nobody' AS trace_id, CAST(repeat('n', 32), 'FixedString(32)') AS trace_digest) FROM drift_points WHERE drift_points.trace_id = 'deleted-1'",
		strings.Repeat("6e", 32) + " has a point, and is neither a row nor a dead letter",
	},
	{ // a trace has two points, from two engines
		"INSERT INTO drift_points SELECT * REPLACE('another' AS engine_version) FROM drift_points WHERE trace_id = 'deleted-2'",
		"points are visible, of",
	},
	{ // a streak has no alert
		"ALTER TABLE drift_points UPDATE status = 'drift', streak = 3 WHERE trace_id = 'inserted-1'" + at,
		"an alert opens at trace inserted-1 of agent a, and no event says so",
	},
	{ // an alert has no streak
		"INSERT INTO drift_alerts (event_hour, tenant, agent_id, card_id, alert_id, trace_ids)" +
			" SELECT event_hour, tenant, agent_id, card_id, digest, [trace_id] FROM kept WHERE trace_id = 'inserted-2'",
		"1 events say that an alert about agent a opens at trace inserted-2, the points say 0",
	},
	{ // a verdict is gone
		"ALTER TABLE verdicts DELETE WHERE trace_id = 'robbed-2'" + at,
		"verdicts: trace robbed-2 has no verdict",
	},
	{ // a session's verdict is gone
		"ALTER TABLE session_verdicts DELETE WHERE session_id = 'robbed'" + at,
		`session verdicts: part 1 of session "robbed" of agent a`,
	},
	{ // a record has two agents
		"INSERT INTO traces SELECT * REPLACE('b' AS agent_id) FROM kept WHERE trace_id = 'robbed-1'",
		"has 2: agent_id, session_id, trace_id, stream_partition",
	},
	{ // a series is in two partitions
		"INSERT INTO drift_state SELECT * REPLACE(toUInt16(stream_partition + 1) AS stream_partition) FROM drift_state",
		"drift's state of agent and card",
	},
	{ // an agent is in two partitions
		"ALTER TABLE traces UPDATE stream_partition = stream_partition + 1 WHERE trace_id = 'untouched-2'" + at,
		"owners: agent a has 2: stream_partition",
	},
	{ // a record is measured under two cards
		"INSERT INTO drift_points SELECT * REPLACE('another' AS card_id) FROM drift_points WHERE trace_id = 'untouched-3'",
		"owners: drift point of record ",
	},
	{ // a verdict is changed
		"ALTER TABLE verdicts UPDATE verified = NOT verified WHERE trace_id = 'inserted-0'" + at,
		"verdicts: trace inserted-0 has\n",
	},
	{ // two traces have two current verdicts each
		"INSERT INTO verdicts SELECT * REPLACE(toUInt32(event_hour + 1) AS event_hour) FROM verdicts WHERE trace_id IN ('deleted-0', 'deleted-1')",
		"verdicts: 2 traces have several current ones",
	},
	{ // a row is of another tenant
		"INSERT INTO drift_alerts SELECT * REPLACE('another' AS tenant) FROM drift_alerts WHERE agent_id = 'drifting'",
		"are counted in drift_alerts, a recount gives",
	},
	{ // so there are more verdicts than traces
		"", "current verdicts for ",
	},
	{ // a trace violates its card, and no alert says so
		`ALTER TABLE traces UPDATE raw = replaceOne(raw, '"search"', '"pay"') WHERE trace_id = 'inserted-4'` + at,
		"verdicts: trace inserted-4 has no violation alert",
	},
	{ // a trace is dated after its receipt, and no alert says so
		"ALTER TABLE traces UPDATE raw = replaceOne(raw, '2026-02', '2036-02') WHERE trace_id = 'inserted-3'" + at,
		"verdicts: trace inserted-3 has no finding alert",
	},
	{ // a row is no trace
		"ALTER TABLE traces UPDATE raw = '{}' WHERE trace_id = 'deleted-4'" + at,
		"verdicts: trace deleted-4 is stored and not valid",
	},
	{ // it cannot be measured either
		"", "drift: trace deleted-4 is stored and not valid",
	},
	{ // the verdict on a session has a finding, and no alert says so
		"ALTER TABLE session_verdicts UPDATE `findings.type` = ['forged'], `findings.severity` = ['LOW'], `findings.description` = ['forged']," +
			" `findings.trace_id` = [''], `findings.trace_field` = [''] WHERE session_id = 'untouched'" + at,
		"session verdicts with findings",
	},
	{ // several bundles have no verdict of their session
		"", "parts, of which there are",
	},
	{ // a trace was not used, for no reason
		"ALTER TABLE drift_points UPDATE status = 'conflict' WHERE trace_id = 'robbed-3'" + at,
		"drift: trace robbed-3 was not used, as conflict, and no trace explains it",
	},
	{ // an alert is changed
		"ALTER TABLE drift_alerts UPDATE sustained_traces = 99 WHERE agent_id = 'drifting'" + at,
		`"sustained_traces":99`,
	},
	{ // traces drift, and no alert is stored
		`ALTER TABLE traces UPDATE raw = replaceAll(replaceOne(raw, '"search","category":"bounded"', '"pay","category":"forbidden","target":{"type":"account","identifier":"1"}'), 'honesty', 'speed')` +
			" WHERE agent_id = 'steady' AND event_time >= '2026-02-01 00:00:10'" + at,
		"about agent steady (traces [steady-10 steady-11 steady-12]) was not raised",
	},
	{ // nor published
		"", "stream ALERTS does not contain alert ",
	},
	{ // they repeat a write, and nobody was told
		"", "table loop_alerts does not have the loop loop.",
	},
	{ // neither by a message
		"", "stream ALERTS does not have the loop loop.",
	},
	{ // an alert about a loop is changed
		"ALTER TABLE loop_alerts UPDATE description = 'nothing' WHERE agent_id = 'looping'" + at,
		"table loop_alerts has the loop\n",
	},
	{ // there was no such loop
		"INSERT INTO loop_alerts (event_hour, tenant, agent_id, alert_id, trace_id) SELECT event_hour, tenant, agent_id, digest, trace_id FROM kept WHERE trace_id = 'inserted-2'",
		"table loop_alerts has the loop loop.",
	},
	{ // a part of a session is missing
		"INSERT INTO bundles SELECT * REPLACE(3 AS part, CAST(repeat('c', 32), 'FixedString(32)') AS sha256) FROM bundles WHERE session_id = 'robbed'",
		`session "robbed" of agent a has no part 2 before part 3`,
	},
	{ // a part begins before the one before it ends
		"INSERT INTO bundles SELECT * REPLACE(2 AS part, CAST(repeat('d', 32), 'FixedString(32)') AS sha256, lower(hex(bundles.sha256)) AS previous_sha256)" +
			" FROM bundles WHERE session_id = 'inserted'",
		`parts 1 and 2 of session "inserted" of agent a overlap`,
	},
	{ // a bundle counts a trace that nobody judged
		"ALTER TABLE bundles UPDATE trace_count = 6 WHERE session_id = 'inserted' AND part = 1" + at,
		"holds 6 traces, 5 are judged",
	},
}

// otherDamages are changes outside the tables. They follow damages, in this order.
var otherDamages = []struct {
	do   func(*site)
	says string
}{
	{ // the ledger claims a bundle as the first part of a session
		func(s *site) { s.claimAgain("untouched") }, "is claimed as two bundles",
	},
	{ // that bundle does not exist
		nil, "the ledger claims bundle " + schema.DigestOf([]byte("untouched")).String() + ", and there is no row of it",
	},
	{ // a bundle's file is gone
		func(s *site) {
			path := s.query("SELECT path FROM bundles WHERE session_id = 'deleted'")[0][0].(string)
			s.check(os.Remove(filepath.Join(s.bundleDir(), path)))
		}, "session verdicts: open ",
	},
	{ // an alert is about no trace
		func(s *site) { s.alert(subject.AlertViolation, "violation.forged", `{"agent_id":"a"}`) },
		"alert violation.forged about agent a belongs to no trace",
	},
	{ // an alert is no JSON
		func(s *site) { s.alert(subject.AlertViolation, "violation.broken", `{`) },
		"verdicts: a message on aap.alert.violation.a cannot be decoded",
	},
	{ // an alert of drift is about no streak
		func(s *site) {
			s.alert(subject.AlertDrift, "forged", fmt.Sprintf(`{"agent_id":"a","alert_id":"%s"}`, schema.Digest{1}))
		},
		"stream ALERTS contains alert " + schema.Digest{1}.String(),
	},
	{ // an alert of drift has no id
		func(s *site) { s.alert(subject.AlertDrift, "broken", `{"agent_id":"a","alert_id":1}`) },
		"drift: a message on aap.alert.drift.a cannot be decoded",
	},
	{ // an alert of drift is published with other contents
		(*site).publishDamagedAlert, "drift: published is\n",
	},
	{ // an alert is about no loop
		func(s *site) { s.alert(subject.AlertFinding, "loop.forged", `{"agent_id":"a"}`) },
		"stream ALERTS has the loop loop.forged, which is not in the replay",
	},
	{ // a card is no card
		(*site).registerBrokenCard, "a registered card cannot be read",
	},
	{ // drift ends, and a trace is not measured
		(*site).endDrift, "owners: no process owns partition 0 of drift",
	},
	{ // its consumer has not read it
		nil, "acks: consumer drift-",
	},
	{ // it has no point
		nil, "drift: trace unmeasured has no point",
	},
	{ // the verifier ends, and a trace is not read
		(*site).endVerifier, "the verifier's ack floor is ",
	},
	{ // it cannot be compared
		nil, "not all of it was compared",
	},
	{ // the exporter has its lease and does not answer
		func(s *site) { s.check(s.exporter.cmd.Process.Signal(syscall.SIGSTOP)) },
		"exporter: the process that has the lease does not answer",
	},
	{ // and has its partitions
		nil, "owners: no process owns partition 0 of the exporter",
	},
	{ // the chain of the ledger is broken
		(*site).breakLedger, "claims: ledger-000001.jsonl: ",
	},
}

// checkDamageIsSeen damages the site, and requires that the checker reports each damage: a
// checker that misses it would prove nothing in other tests. Together with what was reported
// before, every assertion of the checker must have failed. The site is unusable afterwards.
func (s *site) checkDamageIsSeen(before *recorder) {
	s.t.Helper()
	s.publishDrift()
	for _, d := range damages {
		if d.do != "" {
			s.exec(d.do)
		}
	}
	for _, d := range otherDamages {
		if d.do != nil {
			d.do(s)
		}
	}
	recorder := &recorder{TB: s.t}
	seen := checker.Check(recorder, s.site(), s.publisher.acked)
	if seen.Lost != 1 || seen.Doubled == 0 {
		s.t.Errorf("the checker counts %d lost and %d doubled records", seen.Lost, seen.Doubled)
	}
	says := []string{"copies: bundles shows ", "drift: trace inserted-1 is drift (streak 3), the replay says ", " about agent a is not in the replay"}
	for _, d := range damages {
		says = append(says, d.says)
	}
	for _, d := range otherDamages {
		says = append(says, d.says)
	}
	for _, said := range says {
		if !strings.Contains(recorder.text.String(), said) {
			s.t.Errorf("the checker does not say %q", said)
		}
	}
	for format, place := range assertions(s.t) {
		if !slices.Contains(before.formats, format) && !slices.Contains(recorder.formats, format) {
			s.t.Errorf("%s: no damage makes this assertion fail: %q", place, format)
		}
	}
}

// assertions returns the formats of the errors that package checker reports, with their places.
func assertions(t testing.TB) map[string]token.Position {
	t.Helper()
	found := map[string]token.Position{}
	files, err := filepath.Glob("checker/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("the files of the checker are %v, error %v", files, err)
	}
	for _, file := range files {
		places := token.NewFileSet()
		source, err := parser.ParseFile(places, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(source, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if f, ok := call.Fun.(*ast.SelectorExpr); !ok || f.Sel.Name != "Errorf" {
				return true
			}
			place, format := places.Position(call.Pos()), ""
			if literal, ok := call.Args[0].(*ast.BasicLit); ok {
				format, _ = strconv.Unquote(literal.Value) // the compiler accepted it
			}
			if other, twice := found[format]; format == "" || twice {
				t.Errorf("%s: its format %q is no literal, or also that of %s: no test could tell which of them failed", place, format, other)
			}
			found[format] = place
			return true
		})
	}
	return found
}

// publishDrift publishes traces of three agents. Those of agent drifting raise an alert. Those of
// agent steady do not. Agent looping pays three times the same.
func (s *site) publishDrift() {
	s.t.Helper()
	var lines [][]byte
	for _, agent := range []string{"drifting", "steady"} {
		s.publisher.register(pipelinetest.Card("ac-"+agent, agent))
		for i := range 13 {
			drifts := agent == "drifting" && i >= 10 // ten traces are the baseline
			action := "search"
			if drifts {
				action = "pay"
			}
			line := pipelinetest.Trace(fmt.Sprintf("%s-%d", agent, i), agent, "ac-"+agent, agent, fmt.Sprintf("2026-02-01T00:00:%02dZ", i), action).Data
			if drifts {
				line = bytes.ReplaceAll(line, []byte("honesty"), []byte("speed"))
			}
			lines = append(lines, line)
		}
	}
	s.publisher.register(pipelinetest.Card("ac-looping", "looping"))
	for i := range 3 {
		line := pipelinetest.Trace(fmt.Sprintf("looping-%d", i), "looping", "ac-looping", "looping", fmt.Sprintf("2026-02-01T00:00:%02dZ", i), "pay").Data
		lines = append(lines, bytes.Replace(line, []byte(`"pay",`), []byte(`"pay","target":{"type":"account","identifier":"1"},`), 1))
	}
	s.publisher.publish(lines, nil)
	s.await("an alert of drift", func(c store.Counts) bool { return c.DriftAlerts > 0 })
	checker.AwaitRest(s.t, s.client)
}

// alert publishes a message about agent a on stream ALERTS.
func (s *site) alert(kind subject.AlertKind, id, data string) {
	s.t.Helper()
	s.check(s.client.PublishAlerts(s.t.Context(), []wire.Alert{{Kind: kind, Agent: "a", ID: id, Data: []byte(data)}}))
}

// publishDamagedAlert publishes an alert of drift whose row was changed.
func (s *site) publishDamagedAlert() {
	s.t.Helper()
	alerts, err := s.store.DriftAlerts(s.t.Context())
	s.check(err)
	for i := range alerts {
		if a := &alerts[i].DriftAlert; a.AgentID == "drifting" {
			data, err := json.Marshal(a)
			s.check(err)
			s.check(s.client.PublishAlerts(s.t.Context(), []wire.Alert{{Kind: subject.AlertDrift, Agent: a.AgentID, ID: "changed", Data: data}}))
		}
	}
}

// registerBrokenCard writes what is no card into the bucket of cards.
func (s *site) registerBrokenCard() {
	s.t.Helper()
	cards, err := s.client.Bucket(s.t.Context(), stream.Cards)
	if err != nil {
		s.t.Fatal(err)
	}
	_, err = cards.Put(s.t.Context(), subject.Token("broken"), []byte("{"))
	s.check(err)
}

// endDrift ends drift, and publishes a trace that it does not measure.
func (s *site) endDrift() {
	s.t.Helper()
	checker.AwaitRest(s.t, s.client)
	s.drift.terminate()
	s.publisher.publish([][]byte{trace("unmeasured", "unmeasured", 59)}, nil)
	pipelinetest.Await(s.t, "the verifier to come to rest", func() bool {
		progress, err := s.client.ConsumerProgress(s.t.Context(), stream.Traces, stream.VerifierConsumer)
		return err == nil && progress.Pending == 0 && progress.Unacked == 0
	})
}

// endVerifier ends the verifier and publishes a trace that it does not read. The trace does not
// count as acknowledged.
func (s *site) endVerifier() {
	s.t.Helper()
	s.check(s.verifier.kill())
	other := &publisher{t: s.t, url: s.publisher.url}
	other.publish([][]byte{trace("unread", "unread", 59)}, nil)
}

// breakLedger appends a line to the ledger's file that is no entry. The exporter must be stopped.
func (s *site) breakLedger() {
	s.t.Helper()
	file, err := os.OpenFile(filepath.Join(s.place.dataDir, "ledger", "ledger-000001.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	_, err = file.WriteString("{}\n")
	s.check(errors.Join(err, file.Close()))
}

// removeLease removes the lease of a stage, as an operator does whose process does not answer.
func (s *site) removeLease(stage string) {
	s.t.Helper()
	leases, err := s.client.Bucket(s.t.Context(), stream.Leases)
	if err != nil {
		s.t.Fatal(err)
	}
	_, revision, err := leases.GetNewest(s.t.Context(), stage)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := leases.Delete(s.t.Context(), stage, revision); err != nil {
		s.t.Fatal(err)
	}
}

// claimAgain makes the ledger claim another bundle as the first part of a session.
func (s *site) claimAgain(session string) {
	s.t.Helper()
	event, err := events.Claim{AgentID: "a", SessionID: session, Part: 1, File: "elsewhere", SHA256: schema.DigestOf([]byte(session)).String()}.Event()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.client.AppendLedger(s.t.Context(), event); err != nil {
		s.t.Fatal(err)
	}
	pipelinetest.Await(s.t, "the claim to be chained", func() bool {
		return len(s.query(fmt.Sprintf("SELECT 1 FROM ledger WHERE position(data, '%s') > 0", schema.DigestOf([]byte(session))))) > 0
	})
}
