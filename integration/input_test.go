package integration_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/integration/checker"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// TestInput publishes invalid and unusual input on one site, each kind under agents of its own,
// and stops the services while they work.
func TestInput(t *testing.T) {
	t.Parallel()
	in := &input{site: newSiteAt(t, publishedRule)}
	for _, kind := range []struct {
		name string
		test func(*testing.T, *input)
	}{
		{"broken lines do not affect others", testBrokenLines},
		{"a trace of an unknown card is judged later", testUnknownCard},
		{"hostile names have no effect", testHostileNames},
		{"a foreign agent on a subject is a dead letter", testForeignAgent},
		{"a future trace does not blind drift", testFutureTrace},
		{"services drain", testServicesDrain},
		{"odd traces are judged", testOddTraces},
	} {
		t.Run(kind.name, func(t *testing.T) {
			in.t, in.publisher.t = t, t
			kind.test(t, in)
		})
		in.t, in.publisher.t = t, t
	}
	in.terminate()
}

// input is a site on which one test follows another. Its counts are those since the last check,
// but for traces that are not judged: each test leaves none.
type input struct {
	*site
	stored store.Counts
	seen   checker.Seen
}

// await waits until the counts since the last check satisfy the condition.
func (in *input) await(what string, holds func(store.Counts) bool) {
	in.t.Helper()
	in.site.await(what, func(c store.Counts) bool {
		return holds(store.Counts{
			Traces: c.Traces - in.stored.Traces, Verdicts: c.Verdicts - in.stored.Verdicts, CardUnknown: c.CardUnknown,
			DriftAlerts: c.DriftAlerts - in.stored.DriftAlerts, Bundles: c.Bundles - in.stored.Bundles, DeadLetters: c.DeadLetters - in.stored.DeadLetters,
		})
	})
}

// checkAtRest checks the whole site, and returns what was added since the last check; of copies and
// repeated receipts, all that there are.
func (in *input) checkAtRest() checker.Seen {
	in.t.Helper()
	before := in.seen
	in.seen, in.stored = in.site.checkAtRest(in.publisher.acked), in.counts()
	return checker.Seen{
		Traces: in.seen.Traces - before.Traces, DeadLetters: in.seen.DeadLetters - before.DeadLetters, Unjudged: in.seen.Unjudged,
		Copies: in.seen.Copies, Repeated: in.seen.Repeated, Bundles: in.seen.Bundles - before.Bundles,
		Points: in.seen.Points - before.Points, Late: in.seen.Late - before.Late, Alerts: in.seen.Alerts - before.Alerts,
		Sessions: in.seen.Sessions - before.Sessions, Sealed: in.seen.Sealed - before.Sealed,
	}
}

// An invalid line is refused with its line and pointer; the lines around it are stored.
func testBrokenLines(t *testing.T, s *input) {
	s.publisher.register(pipelinetest.Card("ac", "a"))
	lines := make([][]byte, 60)
	for i := range lines {
		lines[i] = trace(fmt.Sprintf("tr-%d", i), "s", i)
	}
	dated := func(timestamp string) []byte {
		return pipelinetest.Trace("dated", "a", "ac", "s", timestamp, "search").Data
	}
	broken := map[int]struct {
		raw     []byte
		pointer string
	}{
		10: {dated("1920-01-01T00:00:00Z"), "/timestamp"},
		20: {dated("2200-01-01T00:00:00Z"), "/timestamp"},
		30: {bytes.Replace(lines[30], []byte(`"card_id":"ac"`), []byte(`"card_id":"ac","card_id":"other"`), 1), "/card_id"},
		40: {bytes.Replace(lines[40], []byte(`"selection_reasoning":"r"`), []byte(`"selection_reasoning":"`+strings.Repeat("r", 2<<20)+`"`), 1), ""},
		50: {bytes.Replace(lines[50], []byte(`"action":{"type":"execute"`), []byte(`"action":{"type":}`), 1), "/action/type"},
	}
	for i, b := range broken {
		lines[i] = b.raw
	}
	for i, o := range s.publisher.publish(lines, nil) {
		b, bad := broken[i]
		switch {
		case o.Line != i+1:
			t.Errorf("the answer on line %d says %d", i+1, o.Line)
		case !bad && o.Status != "accepted":
			t.Errorf("line %d is %s: %v", i+1, o.Status, o.Faults)
		case bad && (o.Status != "refused" || len(o.Faults) == 0 || o.Faults[0].Pointer != b.pointer):
			t.Errorf("line %d is %s: %v, want refused at %q", i+1, o.Status, o.Faults, b.pointer)
		}
	}
	good := len(lines) - len(broken)
	s.await("the good lines", func(c store.Counts) bool { return int(c.Traces) >= good && int(c.DeadLetters) >= len(broken) })
	if seen := s.checkAtRest(); seen.Traces != good {
		t.Errorf("seen %+v", seen)
	}
}

// A trace whose card is unknown is stored, and judged when the card is registered.
func testUnknownCard(t *testing.T, s *input) {
	late := pipelinetest.Trace("tr-late", "late", "ac-late", "s", "2026-02-01T00:00:00Z", "pay")
	s.publisher.publish([][]byte{late.Data}, nil)
	s.await("the trace, not judged", func(c store.Counts) bool { return c.Traces == 1 && c.CardUnknown == 1 })
	if seen := s.checkAtRest(); seen.Unjudged != 1 {
		t.Errorf("seen %+v", seen)
	}
	s.publisher.register(pipelinetest.Card("ac-late", "late"))
	s.await("the verdict", func(c store.Counts) bool { return c.CardUnknown == 0 })
	found, err := s.store.Violations(t.Context())
	if err != nil || len(found[schema.ForbiddenAction]) != 1 {
		t.Errorf("found %v, %v", found, err)
	}
	s.publisher.end("late", "s")
	s.await("the bundle", func(c store.Counts) bool { return c.Bundles == 1 })
	if seen := s.checkAtRest(); seen.Unjudged != 0 || seen.Sealed != 1 {
		t.Errorf("seen %+v", seen)
	}
}

// Names of agents and sessions that look like paths, subjects or SQL have no effect.
func testHostileNames(t *testing.T, s *input) {
	names := []string{"../../etc/passwd", "/etc/passwd", "..", "a/b\\c", "nul\u0000", "'; DROP TABLE traces; --", "*.>", "%2e%2e%2f", "line\nbreak"}
	for i, name := range names {
		card := fmt.Sprintf("ac-%d", i)
		s.publisher.register(named(t, pipelinetest.Card(card, "AGENT"), "AGENT", "agent "+name))
		raw := pipelinetest.Trace("TRACE", "AGENT", card, "SESSION", "2026-02-01T00:00:00Z", "search").Data
		raw = named(t, raw, "TRACE", name, "AGENT", "agent "+name, "SESSION", name)
		for _, o := range s.publisher.publish([][]byte{raw}, nil) {
			if o.Status != "accepted" {
				t.Errorf("%q is %s: %v", name, o.Status, o.Faults)
			}
		}
		s.publisher.end("agent "+name, name)
	}
	s.await("a bundle each", func(c store.Counts) bool { return int(c.Bundles) == len(names) })
	if seen := s.checkAtRest(); seen.Sealed != len(names) || seen.Sessions != len(names) {
		t.Errorf("seen %+v", seen)
	}
	bundles, err := s.store.Bundles(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range bundles {
		if !filepath.IsLocal(b.Path) {
			t.Errorf("session %q is in %q", b.SessionID, b.Path)
		}
	}
	s.checkNoStrangers()
}

// named replaces words with names, encoded as JSON.
func named(t testing.TB, raw []byte, pairs ...string) []byte {
	t.Helper()
	for pair := range slices.Chunk(pairs, 2) {
		name, err := json.Marshal(pair[1])
		if err != nil {
			t.Fatal(err)
		}
		raw = bytes.ReplaceAll(raw, []byte(`"`+pair[0]+`"`), name)
	}
	return raw
}

// checkNoStrangers requires that no bundle is outside the bundles' directory.
func (s *site) checkNoStrangers() {
	s.t.Helper()
	err := filepath.WalkDir(s.dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && path == s.bundleDir() {
			return fs.SkipDir
		}
		if err == nil && strings.HasSuffix(path, ".gz") {
			s.t.Errorf("%s lies outside of the bundle directory", path)
		}
		return nil // servers remove their files during the walk
	})
	s.check(err)
}

// A record whose agent differs from that of its subject is a dead letter,
// and affects no agent.
func testForeignAgent(t *testing.T, s *input) {
	s.publisher.register(pipelinetest.Card("ac-own", "own"))
	committer := s.client.NewCommitter(stream.CommitConfig{})
	defer committer.Close()
	own := pipelinetest.Trace("tr-own", "own", "ac-own", "s", "2026-02-01T00:00:01Z", "search")
	foreign := pipelinetest.Record("foreign", pipelinetest.Trace("tr-foreign", "own", "ac-own", "s", "2026-02-01T00:00:02Z", "search").Data)
	outcomes, err := committer.Publish(t.Context(), []stream.Record{own, foreign})
	if err != nil || outcomes[0].Err != nil || outcomes[1].Err != nil {
		t.Fatalf("%v %+v", err, outcomes)
	}
	s.await("a trace and a dead letter", func(c store.Counts) bool { return c.Traces == 1 && c.DeadLetters == 1 })
	rows := s.query("SELECT reason, agent_id, digest_hex FROM dead_letters WHERE stage = 'verifier'")
	if rows[0][0] != schema.ReasonForeignAgent || rows[0][1] != "foreign" || rows[0][2] != foreign.Digest.String() {
		t.Errorf("the dead letter is %v", rows)
	}
	s.publisher.acknowledged(own.Digest, foreign.Digest)
	if seen := s.checkAtRest(); seen.Traces != 1 || seen.DeadLetters != 1 {
		t.Errorf("seen %+v", seen)
	}
}

// A trace dated 2099 is stored and does not disable drift detection: the traces after it are
// not late, and their streak is found.
func testFutureTrace(t *testing.T, s *input) {
	s.publisher.register(pipelinetest.Card("ac-ahead", "ahead"))
	var lines [][]byte
	add := func(timestamp, action string) {
		raw := pipelinetest.Trace(fmt.Sprintf("tr-%d", len(lines)), "ahead", "ac-ahead", "s", timestamp, action).Data
		if action != "search" {
			raw = bytes.Replace(raw, []byte(`"type":"execute"`), []byte(`"type":"deny"`), 1)
			raw = bytes.Replace(raw, []byte(`["honesty"]`), []byte(`["speed"]`), 1)
			raw = bytes.Replace(raw, []byte(`"category":"bounded"`), []byte(`"category":"forbidden"`), 1)
		}
		lines = append(lines, raw)
	}
	for i := range 12 {
		add(fmt.Sprintf("2026-02-01T00:00:%02dZ", i), "search")
	}
	add("2099-01-01T00:00:00Z", "search")
	for i := range 3 {
		add(fmt.Sprintf("2026-02-01T00:01:%02dZ", i), "destroy")
	}
	s.publisher.publish(lines, nil)
	s.await("the alert", func(c store.Counts) bool { return c.DriftAlerts == 1 })
	if seen := s.checkAtRest(); seen.Points != len(lines) || seen.Late != 0 || seen.Alerts != 1 {
		t.Errorf("seen %+v", seen)
	}
}

// Unusual but valid traces are stored, judged under a card with the maximum cost,
// sealed, and can be read; so is the trace after them.
func testOddTraces(t *testing.T, s *input) {
	trigger := `{"condition":"note matches '(a+)+$' or x.y.z > 1","action":"log","reason":""}`
	card := bytes.Replace(pipelinetest.Card("ac-odd", "odd"), []byte(`"escalation_triggers":[]`),
		[]byte(`"escalation_triggers":[`+strings.TrimSuffix(strings.Repeat(trigger+",", schema.MaxTriggers), ",")+`]`), 1)
	s.publisher.register(card)
	odd := func(id, old, by string) []byte {
		raw := pipelinetest.Trace(id, "odd", "ac-odd", "s", "2026-02-01T00:00:00Z", "search").Data
		return bytes.Replace(raw, []byte(old), []byte(by), 1)
	}
	const session = `"session_id":"s"`
	lines := [][]byte{
		odd("its own prior", session, session+`,"prior_trace_ids":["its own prior","in a circle","of nobody","\u0000"]`),
		odd("in a circle", session, session+`,"prior_trace_ids":["its own prior"]`),
		odd("long text", session, session+`,"note":"`+strings.Repeat("a", 700_000)+`!"`),
		odd("many values", `["honesty"]`, `["v"`+strings.Repeat(`,"v"`, 100_000)+`]`),
		odd("response of 9999", `"context"`, `"escalation":{"principal_response":{"decision":"approved","timestamp":"9999-12-31T23:59:59Z"}},"context"`),
		odd("deep", `"context"`, `"deep":`+strings.Repeat("[", 63)+strings.Repeat("]", 63)+`,"context"`),
		odd("of the first hour", "2026-02-01T00:00:00Z", "1970-01-01T00:00:00Z"),
		odd("of the last", "2026-02-01T00:00:00Z", "2105-12-31T23:59:59.999999999Z"),
		odd("the next one", "", ""),
	}
	for _, o := range s.publisher.publish(lines, nil) {
		if o.Status != "accepted" {
			t.Errorf("line %d is %s: %v", o.Line, o.Status, o.Faults)
		}
	}
	s.publisher.end("odd", "s")
	s.await("all verdicts and the bundle", func(c store.Counts) bool { return int(c.Verdicts) == len(lines) && c.Bundles == 1 })
	if seen := s.checkAtRest(); seen.Traces != len(lines) || seen.Unjudged != 0 || seen.Sealed != len(lines) {
		t.Errorf("seen %+v", seen)
	}
}
