package exporter_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/seal"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// query runs a statement with all rights.
func (s *site) query(t testing.TB, statement string) (rows [][]any) {
	t.Helper()
	result, err := s.Store.Query(t.Context(), statement)
	if errors.Is(err, io.EOF) {
		return nil // the statement has no result
	}
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	for row, err := range result.Rows {
		if err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
		rows = append(rows, row)
	}
	return rows
}

// A row whose record is valid but whose columns were changed, or whose verdict was removed, is
// not sealed: columns would determine the order of the audit log.
func TestTamperedColumnsAreHeld(t *testing.T) {
	s := newSite(t)
	s.Register(t, pipelinetest.Card("ac", "a"))
	s.judge(t)
	tampering := map[string]string{
		"moved":    "ALTER TABLE traces UPDATE event_time = event_time + INTERVAL 30 SECOND WHERE trace_id = 'moved-0'",
		"numbered": "ALTER TABLE traces UPDATE sequence_number = 7 WHERE session_id = 'numbered'",
		"carded":   "ALTER TABLE traces UPDATE card_id = 'other' WHERE trace_id = 'carded-1'",
		"ended":    "ALTER TABLE traces UPDATE session_end = true WHERE trace_id = 'ended-0'",
		"unjudged": "ALTER TABLE verdicts DELETE WHERE trace_id = 'unjudged-1'",
		"whole":    "SELECT 1",
	}
	for session := range tampering {
		for i := range 3 {
			s.Publish(t, trace(fmt.Sprintf("%s-%d", session, i), session, i))
		}
	}
	pipelinetest.Await(t, "all traces stored", func() bool {
		c, err := s.Store.Counts(t.Context())
		return err == nil && c.Verdicts == uint64(3*len(tampering))
	})
	for session, statement := range tampering {
		s.Exec(t, "%s", statement)
		s.requestEnd(t, "a", session)
	}
	env := pipelinetest.Env(t, "exporter")
	s.exportIn(t, env, nil)
	pipelinetest.Await(t, "every session sealed or held", func() bool {
		return len(s.query(t, "SELECT DISTINCT session_id FROM seal_runs")) == len(tampering)
	})
	pipelinetest.Await(t, "the number of held sessions", func() bool {
		return pipelinetest.Metric(t, env, "plumbline_exporter_held_sessions", "") == float64(len(tampering)-1) &&
			pipelinetest.Metric(t, env, "plumbline_exporter_session_verdicts_total", "") == 1
	})
	var sealed []string
	for session := range tampering {
		if len(s.bundles(t, "a", session)) > 0 {
			sealed = append(sealed, session)
		}
	}
	if !slices.Equal(sealed, []string{"whole"}) {
		t.Errorf("sealed %v, want only the unchanged session", sealed)
	}
	reported := map[string]string{}
	for _, row := range s.query(t, "SELECT DISTINCT session_id, arraySort(changed) FROM seal_runs WHERE outcome != 'sealed' AND notEmpty(reason)") {
		reported[row[0].(string)] = fmt.Sprint(row[1])
	}
	if want := map[string]string{"moved": "[moved-0]", "numbered": "[numbered-0 numbered-1 numbered-2]", "carded": "[carded-1]",
		"ended": "[ended-0]", "unjudged": "[]"}; !maps.Equal(reported, want) { // no row of the last is changed: its reason says what lacks
		t.Errorf("reported %v, want %v", reported, want)
	}
}

// A plan that a process with another key left is carried out with the present key, and states
// that key. The file that the other process was writing is removed.
func TestPlanOfAnotherKey(t *testing.T) {
	s := newSite(t)
	s.Register(t, pipelinetest.Card("ac", "a"))
	s.judge(t)
	s.Publish(t, trace("tr-1", "s", 0))
	s.requestEnd(t, "a", "s")
	state, err := s.Client.StreamState(t.Context(), stream.Traces)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now().Unix()
	left := seal.Record{
		State: seal.Planned, Part: 1, StreamCreated: state.Created, Cut: state.LastSequence, Traces: 1, ExportedAt: at,
		KeyID: "another", LastPart: true, Reason: seal.ReasonRequested, File: seal.File("a", "s", at),
	}
	value, err := left.Encode()
	if err != nil {
		t.Fatal(err)
	}
	bucket, err := s.Client.Bucket(t.Context(), stream.Seals)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bucket.Create(t.Context(), seal.Key("a", "s"), value); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(s.dir, "bundles", filepath.Dir(left.File))
	staged := filepath.Join(folder, "."+filepath.Base(left.File)+".123")
	if err := errors.Join(os.MkdirAll(folder, 0o755), os.WriteFile(staged, []byte("half"), 0o600)); err != nil {
		t.Fatal(err)
	}
	s.export(t, nil)
	pipelinetest.Await(t, "the session sealed", func() bool { return len(s.bundles(t, "a", "s")) == 1 })
	if _, err := os.Stat(staged); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("half a bundle is left: %v", err)
	}
	b := s.bundles(t, "a", "s")[0]
	report, _ := s.check(t, b)
	if b.KeyID != report.KeyID || b.KeyID == left.KeyID {
		t.Errorf("the row names key %q, the bundle is signed with %q", b.KeyID, report.KeyID)
	}
}
