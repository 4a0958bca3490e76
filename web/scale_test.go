package web

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/database"
)

var (
	traces = flag.Int("traces", 0, "number of stored traces with which the pages are measured")
	spread = flag.Duration("spread", 24*time.Hour, "time within which they were received")
)

// The rows of a fleet of 200 agents: 15 traces a session, each of 25 traces with a violation, all sessions sealed. A record
// has a text of 300 characters that no other has.
var scaleRows = []string{
	`INSERT INTO traces (event_hour, tenant, agent_id, trace_id, digest, event_time, received_at, retain_until, stream_created, stream_sequence, stream_partition, card_id, session_id, action_type, action_name, selected, values_applied, confidence, has_execution, cost_cents, raw)
SELECT intDiv(toUnixTimestamp(t), 3600), 'default', agent, concat('tr-', hex(sipHash64(n))), SHA256(toString(n)), t, t + INTERVAL 50 MILLISECOND, now() + INTERVAL 90 DAY, toDateTime64(1, 9, 'UTC'), n + 1, n % 16, 'ac-1', session, 'execute', 'search', 'a', ['honesty'], 0.9, true, 3,
  concat('{"aap_version":"0.1.0","action":{"type":"execute","name":"search","category":"bounded"},"decision":{"alternatives_considered":[{"option_id":"a","description":"search","scoring_factors":{"principal_benefit":0.9}}],"selected":"a","values_applied":["honesty"],"selection_reasoning":"', hex(randomString(150)), '"}}')`,
	`INSERT INTO verdicts (event_hour, tenant, agent_id, trace_id, trace_digest, card_digest, engine_version, profile, verified_at, event_time, received_at, retain_until, stream_created, stream_sequence, session_id, card_id, status, verified, recommended_action, violations.type, violations.severity, violations.description, violations.trace_field)
SELECT intDiv(toUnixTimestamp(t), 3600), 'default', agent, concat('tr-', hex(sipHash64(n))), SHA256(toString(n)), SHA256('card'), '1', 'spec', t + INTERVAL 250 MILLISECOND, t, t + INTERVAL 50 MILLISECOND, now() + INTERVAL 90 DAY, toDateTime64(1, 9, 'UTC'), n + 1, session, 'ac-1', 'judged', n % 25 != 0, 'proceed', if(n % 25 = 0, ['UNBOUNDED_ACTION'], []), if(n % 25 = 0, ['HIGH'], []), if(n % 25 = 0, ['not bounded'], []), if(n % 25 = 0, ['/action/name'], [])`,
	`INSERT INTO drift_points (event_hour, tenant, agent_id, card_id, trace_id, trace_digest, engine_version, event_time, received_at, retain_until, stream_created, stream_sequence, session_id, status, similarity, threshold, mode)
SELECT intDiv(toUnixTimestamp(t), 3600), 'default', agent, 'ac-1', concat('tr-', hex(sipHash64(n))), SHA256(toString(n)), 'plumbline-drift/10 (x)', t, t + INTERVAL 50 MILLISECOND, now() + INTERVAL 90 DAY, toDateTime64(1, 9, 'UTC'), n + 1, session, if(n < 12000, 'baseline', 'normal'), 0.8, 0.3, 'sessions'`,
}

var scaleSessions = []string{
	`INSERT INTO bundles (tenant, agent_id, session_id, part, sha256, last_part, path, bytes, trace_count, first_event, last_event, last_sequence, trace_ids, exported_at)
SELECT 'default', agent, session, 1, SHA256(concat(agent, session)), true, concat(session, '.tar.gz'), 9000, count(), min(t), max(t), max(n) + 1, groupArray(concat('tr-', hex(sipHash64(n)))), max(t) + INTERVAL 1 MINUTE`,
	`INSERT INTO sessions (tenant, agent_id, session_id, version, status, traces, bundles, ended, first_event, last_event, last_sequence)
SELECT 'default', agent, session, 1, 'sealed', count(), 1, true, min(t), max(t), max(n) + 1`,
	`INSERT INTO session_verdicts (tenant, agent_id, session_id, part, engine_version, profile, verified_at, recommended_action, traces)
SELECT 'default', agent, session, 1, '1', 'spec', max(t), 'proceed', count()`,
}

// The visitors' tokens: of all 200 agents, and of fewer.
var scaleTokens = []string{"all * traces:read", "one did:web:fleet.example:7 traces:read", "of-11 did:web:fleet.example:7* traces:read", "of-111 did:web:fleet.example:1* traces:read"}

// Measures the server's time of each page: the first answer, and the median of the next ones.
// go test ./web -run TestServerTime -traces 10000000 -v
func TestServerTime(t *testing.T) {
	if *traces == 0 {
		t.Skip("no -traces: nothing is measured")
	}
	r := start(t, nil, scaleTokens...)
	r.server.fleets.fresh = false
	db, err := database.Open(database.Config{DSN: r.dsn})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	const together = 500_000
	for from := 0; from < *traces; from += together {
		of := fmt.Sprintf(` FROM (SELECT number AS n, concat('did:web:fleet.example:', toString(n %% 200)) AS agent, concat('sess-', toString(n %% 200), '-', toString(intDiv(n, 3000))) AS session,
toDateTime64(now(), 9, 'UTC') - toIntervalMillisecond(toInt64((%d - n) * %f)) AS t FROM numbers(%d, %d))`, *traces, float64(spread.Milliseconds())/float64(*traces), from, min(together, *traces-from))
		for i, statement := range append(slices.Clone(scaleRows), scaleSessions...) {
			end := ""
			if i >= len(scaleRows) {
				end = " GROUP BY agent, session"
			}
			if err := db.Exec(t.Context(), statement+of+end); err != nil {
				t.Fatal(err)
			}
		}
	}
	formed := time.Now().Add(-*spread + time.Duration(float64(*spread)*12000/float64(*traces))) // by the first traces
	if err := db.Exec(t.Context(), fmt.Sprintf(`INSERT INTO drift_baselines (tenant, agent_id, card_id, baseline_id, mode, formed_at, received_at, traces, features.name, features.weight)
SELECT 'default', concat('did:web:fleet.example:', toString(number)), 'ac-1', SHA256(toString(number)), 'sessions', fromUnixTimestamp64Nano(%d), now64(9), 60, ['action_name:search', 'value:honesty'], [1, 1] FROM numbers(200)`, formed.UnixNano())); err != nil {
		t.Fatal(err)
	}
	if err := db.Exec(t.Context(), "INSERT INTO drift_state (tenant, agent_id, card_id, version, last_event_time) SELECT 'default', concat('did:web:fleet.example:', toString(number)), 'ac-1', 1, now64(9) FROM numbers(200)"); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d traces within %s", *traces, *spread)
	for _, token := range scaleTokens { // as in a console that starts: the page says that it counts, and loads itself again, until it has figures
		name, _, _ := strings.Cut(token, " ")
		began, answers := time.Now(), 0
		visitor := r.visitor(name)
		for again := true; again; answers++ {
			again = strings.Contains(visitor.page("/"), "Counting")
		}
		t.Logf("%-50s counted after %5d ms, in answer %d", token, time.Since(began).Milliseconds(), answers)
	}
	r.server.fleets.all = nil
	counting, stop := context.WithCancel(t.Context())
	var counted sync.WaitGroup
	counted.Go(func() { r.server.keepFigures(counting) })
	defer func() { stop(); counted.Wait() }()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		if r.server.fleets.answers() == len(scaleTokens) {
			t.Logf("everything is counted %d ms after the start", time.Since(began).Milliseconds())
			break
		}
	}
	var visitor *visitor
	for _, token := range slices.Backward(scaleTokens) {
		name, _, _ := strings.Cut(token, " ")
		began := time.Now()
		visitor = r.visitor(name) // the login leads to the page
		t.Logf("%-50s first visitor after %5d ms", token, time.Since(began).Milliseconds())
		visitor.page("/", "Most active agents")
	}
	agent := "/agent?id=did:web:fleet.example:7"
	for _, path := range []string{"/", agent, agent + "&for=1h", agent + "&for=30d", "/search", "/search?q=fleet.example:77", "/search?q=sess-77-10", "/search?q=tr-0"} {
		var took []time.Duration
		size := 0
		for range 6 {
			began := time.Now()
			text := visitor.page(path)
			took, size = append(took, time.Since(began)), len(text)
		}
		first := took[0]
		slices.Sort(took[1:])
		t.Logf("%-50s first %5d ms, then %5d ms, %6d bytes", path, first.Milliseconds(), took[3].Milliseconds(), size)
	}
}
