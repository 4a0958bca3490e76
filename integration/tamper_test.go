package integration_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/plumbline/plumbline/integration/checker"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// exec runs statements as a user with all rights.
func (s *site) exec(statements ...string) {
	s.t.Helper()
	options, err := clickhouse.ParseDSN(s.engine.AdminDSN())
	if err != nil {
		s.t.Fatal(err)
	}
	conn, err := clickhouse.Open(options)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	for _, statement := range statements {
		if err := conn.Exec(s.t.Context(), statement); err != nil {
			s.t.Fatalf("%s: %v", statement, err)
		}
	}
}

// query returns the rows of a statement.
func (s *site) query(statement string) (rows [][]any) {
	s.t.Helper()
	result, err := s.store.Query(s.t.Context(), statement)
	if err != nil {
		s.t.Fatal(err)
	}
	for row, err := range result.Rows {
		if err != nil {
			s.t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows
}

const at = " SETTINGS mutations_sync = 2"

// tampering lists changes to the rows of a session, and how they are undone. Each session has
// traces <session>-0 … <session>-4.
var tampering = []struct {
	session      string
	do, undo     []string
	changed      []string
	foreign      []string
	missingCount int
}{
	{
		session: "edited",
		do:      []string{"ALTER TABLE traces UPDATE raw = replaceOne(raw, 'search', 'delete') WHERE trace_id = 'edited-2'" + at},
		undo:    []string{"ALTER TABLE traces UPDATE raw = replaceOne(raw, 'delete', 'search') WHERE trace_id = 'edited-2'" + at},
		changed: []string{"edited-2"},
	},
	{
		session:      "deleted",
		do:           []string{"ALTER TABLE traces DELETE WHERE trace_id = 'deleted-3'" + at},
		undo:         []string{"INSERT INTO traces SELECT * FROM kept WHERE trace_id = 'deleted-3'"},
		missingCount: 1,
	},
	{
		session: "inserted",
		do: []string{"INSERT INTO traces SELECT * REPLACE('forged' AS trace_id, replaceOne(raw, 'inserted-1', 'forged') AS raw," +
			" CAST(SHA256(replaceOne(raw, 'inserted-1', 'forged')), 'FixedString(32)') AS digest) FROM kept WHERE kept.trace_id = 'inserted-1'"},
		undo:    []string{"ALTER TABLE traces DELETE WHERE trace_id = 'forged'" + at},
		foreign: []string{"forged"},
	},
	{
		session:      "robbed",
		do:           []string{"ALTER TABLE traces UPDATE session_id = 'whole' WHERE trace_id = 'robbed-4'" + at},
		undo:         []string{"ALTER TABLE traces UPDATE session_id = 'robbed' WHERE trace_id = 'robbed-4'" + at},
		missingCount: 1,
	},
}

// Rows that are changed, deleted, inserted or moved before a session is sealed are detected:
// the session is held and the rows are named; other sessions are sealed. When the rows are
// restored, the session is sealed too.
func TestTamperedSessionsAreHeld(t *testing.T) {
	t.Parallel()
	s := newSiteAt(t, publishedRule)
	s.publisher.register(pipelinetest.Card("ac", "a"))
	sessions := []string{"untouched"}
	for _, tamper := range tampering {
		sessions = append(sessions, tamper.session)
	}
	var lines [][]byte
	for i := range 5 {
		for _, session := range sessions {
			lines = append(lines, trace(fmt.Sprintf("%s-%d", session, i), session, i))
		}
	}
	s.publisher.publish(lines, nil)
	s.await("all traces", func(c store.Counts) bool { return int(c.Traces) == len(lines) })
	s.exec("CREATE TABLE kept AS traces", "INSERT INTO kept SELECT * FROM traces")
	for _, tamper := range tampering {
		s.exec(tamper.do...)
	}
	for _, session := range sessions {
		s.publisher.end("a", session)
	}
	s.await("one session sealed", func(c store.Counts) bool { return c.Bundles > 0 })
	pipelinetest.Await(t, "the other sessions held", func() bool { return len(s.heldSessions()) == len(tampering) })
	for _, tamper := range tampering {
		s.checkReported(tamper.session, tamper.changed, tamper.foreign, tamper.missingCount)
	}
	if n := s.counts().Bundles; n != 1 {
		t.Errorf("%d sessions are sealed", n)
	}
	found := s.checkFoundOut()

	for _, tamper := range tampering {
		s.exec(tamper.undo...)
	}
	s.exporter.terminate() // a restarted exporter checks held sessions at once
	s.check(s.exporter.start())
	s.await("every session sealed", func(c store.Counts) bool { return int(c.Bundles) == len(sessions) })
	pipelinetest.Await(t, "no session held", func() bool { return len(s.heldSessions()) == 0 })
	if seen := s.checkAtRest(s.publisher.acked); seen.Traces != len(lines) || seen.Sealed != len(lines) || seen.Bundles != len(sessions) {
		t.Errorf("seen %+v", seen)
	}
	s.checkDamageIsSeen(found)
}

// heldSessions returns the sessions that are held now.
func (s *site) heldSessions() (held []string) {
	s.t.Helper()
	for _, row := range s.query("SELECT session_id FROM sessions WHERE status = 'held' ORDER BY session_id") {
		held = append(held, row[0].(string))
	}
	return held
}

// checkReported requires that table seal_runs names exactly these rows.
func (s *site) checkReported(session string, changed, foreign []string, missing int) {
	s.t.Helper()
	rows := s.query("SELECT changed, foreign_rows, missing, reason FROM seal_runs WHERE outcome = 'held' AND session_id = '" + session + "'")
	if len(rows) != 1 {
		s.t.Errorf("session %s: %d reports, want one", session, len(rows))
		return
	}
	row := rows[0]
	if !slices.Equal(row[0].([]string), changed) || !slices.Equal(row[1].([]string), foreign) || len(row[2].([]string)) != missing {
		s.t.Errorf("session %s is held with changed %v, foreign %v, missing %v: %s", session, row[0], row[1], row[2], row[3])
	}
}

// checkFoundOut requires that the checker also detects the tampering: a checker that
// misses it would prove nothing in other tests. It returns what the checker reported.
func (s *site) checkFoundOut() *recorder {
	s.t.Helper()
	checker.AwaitRest(s.t, s.client)
	recorder := &recorder{TB: s.t}
	checker.Check(recorder, s.site(), []schema.Digest{{1}})
	for _, complaint := range []string{
		"was acknowledged and is not in the stream",
		`row_changed: agent "a" session "edited" trace "edited-2"`,
		`row_missing: agent "a" session "deleted" trace "deleted-3"`,
		`trace "forged"`,
		`columns_changed: agent "a" session "robbed" trace "robbed-4"`,
	} {
		if !strings.Contains(recorder.text.String(), complaint) {
			s.t.Errorf("the checker does not say: %s", complaint)
		}
	}
	return recorder
}

// recorder is a testing.TB that records errors instead of reporting them.
type recorder struct {
	testing.TB
	text    strings.Builder
	formats []string // of the errors
}

func (r *recorder) Errorf(format string, args ...any) {
	fmt.Fprintf(&r.text, format+"\n", args...)
	r.formats = append(r.formats, format)
}

// trace returns a valid trace of agent a.
func trace(id, session string, second int) []byte {
	return pipelinetest.Trace(id, "a", "ac", session, fmt.Sprintf("2026-02-01T00:00:%02dZ", second), "search").Data
}
