package exporter_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/pipeline/exporter"
	"github.com/plumbline/plumbline/pipeline/keyfile"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/verifier"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

func TestMain(m *testing.M) { pipelinetest.Main(m) }

type site struct {
	*pipelinetest.Rig
	dir       string
	bundleDir string // empty: that in dir
}

func newSite(t testing.TB) *site { return &site{Rig: pipelinetest.New(t), dir: t.TempDir()} }

// judge runs a verifier until the test ends.
func (s *site) judge(t testing.TB) *pipelinetest.Stage {
	cfg := verifier.Default()
	cfg.Common, cfg.ClickHouse, cfg.BatchAge = s.Common(), s.ClickHouse(), 20*time.Millisecond
	env := pipelinetest.Env(t, "verifier")
	return pipelinetest.Go(t, func(ctx context.Context) error { return verifier.Serve(ctx, &cfg, env) })
}

// export runs an exporter.
func (s *site) export(t testing.TB, change func(*exporter.Config)) *pipelinetest.Stage {
	return s.exportIn(t, pipelinetest.Env(t, "exporter"), change)
}

func (s *site) exportIn(t testing.TB, env *service.Env, change func(*exporter.Config)) *pipelinetest.Stage {
	cfg := exporter.Default()
	cfg.Common, cfg.ClickHouse = s.Common(), s.ClickHouse()
	cfg.DataDir, cfg.Every = s.dir, 50*time.Millisecond
	if change != nil {
		change(&cfg)
	}
	return pipelinetest.Go(t, func(ctx context.Context) error { return exporter.Serve(ctx, &cfg, env) })
}

func (s *site) bundles(t testing.TB, agent, session string) []store.Bundle {
	t.Helper()
	bundles, err := s.Store.Bundles(t.Context(), agent, session)
	if err != nil {
		t.Fatal(err)
	}
	return bundles
}

// requestEnd requests that a session is sealed with everything published so far.
func (s *site) requestEnd(t testing.TB, agent, session string) {
	t.Helper()
	state, err := s.Client.StreamState(t.Context(), stream.Traces)
	if err != nil {
		t.Fatal(err)
	}
	end := wire.EndRequest{AgentID: agent, SessionID: session, ThroughSequence: state.LastSequence, Stream: state.Created.UnixNano()}
	if err := s.Client.RequestEnd(t.Context(), subject.Partition(agent), end); err != nil {
		t.Fatal(err)
	}
}

// check verifies a bundle with the exporter's own key and returns its rows.
func (s *site) check(t testing.TB, b store.Bundle) (*aivs.Report, []aivs.Row) {
	t.Helper()
	key, err := keyfile.Load(filepath.Join(s.dir, "keys", "session.key"))
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(cmp.Or(s.bundleDir, filepath.Join(s.dir, "bundles")), b.Path))
	if err != nil {
		t.Fatal(err)
	}
	if schema.DigestOf(data) != b.SHA256 {
		t.Errorf("%s is not the file in table bundles", b.Path)
	}
	var rows []aivs.Row
	report, err := aivs.Verify(bytes.NewReader(data), aivs.Options{
		Keys: []ed25519.PublicKey{key.Public().(ed25519.PublicKey)},
		Row:  func(r *aivs.Row) { rows = append(rows, *r) },
	})
	if err != nil || !report.Intact {
		t.Fatalf("%s: %v %+v", b.Path, err, report)
	}
	return report, rows
}

// traceIDs returns the trace ids in the rows between open and seal.
func traceIDs(t testing.TB, rows []aivs.Row) (ids []string) {
	t.Helper()
	for _, row := range rows[1 : len(rows)-1] {
		var inputs struct {
			TraceID string `json:"trace_id"`
		}
		if err := json.Unmarshal([]byte(row.InputsJSON), &inputs); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, inputs.TraceID)
	}
	return ids
}

func trace(id, session string, second int) stream.Record {
	return pipelinetest.Trace(id, "a", "ac", session, fmt.Sprintf("2026-02-01T00:00:%02dZ", second), "search")
}

func TestRequestedSessionIsSealedInOrder(t *testing.T) {
	s := newSite(t)
	s.Register(t, pipelinetest.Card("ac", "a"))
	s.judge(t)
	s.export(t, nil)
	s.Publish(t, trace("tr-2", "../../etc/passwd", 2), trace("tr-1", "../../etc/passwd", 1), trace("other", "open", 1))
	s.requestEnd(t, "a", "../../etc/passwd")
	pipelinetest.Await(t, "the bundle", func() bool { return len(s.bundles(t, "a", "../../etc/passwd")) == 1 })
	report, rows := s.check(t, s.bundles(t, "a", "../../etc/passwd")[0])
	if got := fmt.Sprint(traceIDs(t, rows)); got != "[tr-1 tr-2]" {
		t.Errorf("the rows are of traces %s", got)
	}
	if report.Opening.SessionID != "../../etc/passwd" || !report.Opening.LastPart || report.Opening.Part != 1 {
		t.Errorf("opening is %+v", report.Opening)
	}
	if n := len(s.bundles(t, "a", "open")); n != 0 {
		t.Errorf("the open session has %d bundles", n)
	}
}

// Traces that arrive after a session was sealed make the next part. A restart folds the same
// receipts again and seals nothing twice.
func TestLateTracesMakeTheNextPart(t *testing.T) {
	s := newSite(t)
	s.Register(t, pipelinetest.Card("ac", "a"))
	s.judge(t)
	stage := s.export(t, nil)
	s.Publish(t, trace("tr-1", "s", 1))
	s.requestEnd(t, "a", "s")
	pipelinetest.Await(t, "the first part", func() bool { return len(s.bundles(t, "a", "s")) == 1 })
	stage.Stop(t)
	s.Publish(t, trace("tr-2", "s", 2))
	s.requestEnd(t, "a", "s")
	stage = s.export(t, nil)
	pipelinetest.Await(t, "the second part", func() bool { return len(s.bundles(t, "a", "s")) == 2 })
	stage.Stop(t)
	stage = s.export(t, nil)
	s.Publish(t, trace("x", "next", 3))
	s.requestEnd(t, "a", "next")
	pipelinetest.Await(t, "another session", func() bool { return len(s.bundles(t, "a", "next")) == 1 })
	stage.Stop(t)
	bundles := s.bundles(t, "a", "s")
	if len(bundles) != 2 {
		t.Fatalf("the session has %d bundles", len(bundles))
	}
	first, _ := s.check(t, bundles[0])
	second, rows := s.check(t, bundles[1])
	if second.Opening.PreviousBundleHash != first.SHA256 || second.Opening.Part != 2 {
		t.Errorf("the second part opens with %+v", second.Opening)
	}
	if got := fmt.Sprint(traceIDs(t, rows)); got != "[tr-2]" {
		t.Errorf("the second part holds %s", got)
	}
}

func TestRotation(t *testing.T) {
	bounds := map[string]func(*exporter.Config){
		"by rows":  func(cfg *exporter.Config) { cfg.RotateRows = 2 },
		"by bytes": func(cfg *exporter.Config) { cfg.RotateBytes = int64(5 * len(trace("tr-0", "s", 0).Data) / 2) },
	}
	for name, bound := range bounds {
		t.Run(name, func(t *testing.T) { rotate(t, bound) })
	}
}

// rotate seals five traces in three parts.
func rotate(t *testing.T, bound func(*exporter.Config)) {
	s := newSite(t)
	s.Register(t, pipelinetest.Card("ac", "a"))
	s.judge(t)
	s.export(t, bound)
	for i := range 5 {
		s.Publish(t, trace(fmt.Sprintf("tr-%d", i), "s", i))
	}
	s.requestEnd(t, "a", "s")
	pipelinetest.Await(t, "three parts", func() bool { return len(s.bundles(t, "a", "s")) == 3 })
	var ids []string
	for i, b := range s.bundles(t, "a", "s") {
		report, rows := s.check(t, b)
		ids = append(ids, traceIDs(t, rows)...)
		if report.Opening.LastPart != (i == 2) {
			t.Errorf("part %d: last_part is %v", i+1, report.Opening.LastPart)
		}
	}
	if got := fmt.Sprint(ids); got != "[tr-0 tr-1 tr-2 tr-3 tr-4]" {
		t.Errorf("the parts hold %s", got)
	}
}

// A session with more cards than verifiers accept in one bundle is sealed in several parts.
func TestRotationByCards(t *testing.T) {
	const cards = 1_003
	s := newSite(t)
	s.judge(t)
	s.export(t, nil)
	var records []stream.Record
	var registered [][]byte
	for i := range cards {
		card := fmt.Sprintf("ac-%04d", i)
		registered = append(registered, pipelinetest.Card(card, "a"))
		records = append(records, pipelinetest.Trace(fmt.Sprintf("tr-%d", i), "a", card, "s", fmt.Sprintf("2026-02-01T00:%02d:%02dZ", i/60, i%60), "search"))
	}
	s.Register(t, registered...)
	s.Publish(t, records...)
	s.requestEnd(t, "a", "s")
	pipelinetest.Await(t, "two parts", func() bool { return len(s.bundles(t, "a", "s")) == 2 })
	var ids []string
	for i, b := range s.bundles(t, "a", "s") {
		report, rows := s.check(t, b)
		traces, wantReason := traceIDs(t, rows), []string{"rotation", "requested"}[i]
		ids = append(ids, traces...)
		if report.Opening.LastPart != (i == 1) || b.Reason != wantReason || b.TraceCount != uint64(len(traces)) || len(report.Opening.Members) != 4+len(traces) {
			t.Errorf("part %d opens with last_part %v, %d members; its row has %q and %d traces of %d", i+1, report.Opening.LastPart, len(report.Opening.Members), b.Reason, b.TraceCount, len(traces))
		}
	}
	if len(ids) != cards || ids[999] != "tr-999" || ids[1000] != "tr-1000" || ids[cards-1] != "tr-1002" {
		t.Errorf("the parts hold %d traces", len(ids))
	}
}

// republished returns a copy of a record that the broker cannot recognise as a repetition, as after the
// duplicate window.
func republished(r stream.Record) stream.Record {
	r.Digest = schema.DigestOf(r.Digest[:])
	return r
}

// A trace that is published again long after it was sealed enters no further bundle.
func TestRepeatedTracesAreSealedOnce(t *testing.T) {
	s := newSite(t)
	s.Register(t, pipelinetest.Card("ac", "a"))
	s.judge(t)
	s.export(t, nil)
	seal := func(session string, parts int) {
		t.Helper()
		s.requestEnd(t, "a", session)
		pipelinetest.Await(t, "the bundle of "+session, func() bool { return len(s.bundles(t, "a", session)) == parts })
	}
	s.Publish(t, trace("tr-1", "s", 1), trace("tr-2", "s", 2))
	seal("s", 1)
	s.Publish(t, republished(trace("tr-1", "s", 1)), trace("tr-3", "s", 3))
	seal("s", 2)
	s.Publish(t, republished(trace("tr-2", "s", 2)))
	s.requestEnd(t, "a", "s")
	s.Publish(t, trace("x", "other", 4))
	seal("other", 1)
	bundles := s.bundles(t, "a", "s")
	if len(bundles) != 2 {
		t.Fatalf("the session has %d bundles", len(bundles))
	}
	_, rows := s.check(t, bundles[1])
	if got := fmt.Sprint(traceIDs(t, rows)); got != "[tr-3]" {
		t.Errorf("the second part holds %s", got)
	}
}

// A copy of a sealed trace that the broker's clock dates before the trace replaces its row. It enters no
// further bundle.
func TestCopiesAreSealedOnceAfterTheClockWasSetBack(t *testing.T) {
	s := newSite(t)
	s.Register(t, pipelinetest.Card("ac", "a"))
	s.judge(t)
	stage := s.export(t, nil)
	s.Publish(t, trace("tr-1", "s", 1), trace("tr-2", "s", 2))
	s.requestEnd(t, "a", "s")
	pipelinetest.Await(t, "the bundle", func() bool { return len(s.bundles(t, "a", "s")) == 1 })
	stage.Stop(t)
	s.Publish(t, republished(trace("tr-1", "s", 1)))
	state, err := s.Client.StreamState(t.Context(), stream.Traces)
	if err != nil {
		t.Fatal(err)
	}
	pipelinetest.Await(t, "the copy stored", func() bool {
		progress, err := s.Client.ConsumerProgress(t.Context(), stream.Traces, stream.VerifierConsumer)
		return err == nil && progress.AckFloor >= state.LastSequence
	})
	// The row that the verifier stores of a message which the broker has dated an hour earlier: a test cannot
	// set the broker's clock.
	s.Exec(t, "INSERT INTO traces SELECT * REPLACE (received_at - INTERVAL 1 HOUR AS received_at, %d AS stream_sequence) FROM traces FINAL WHERE trace_id = 'tr-1'", state.LastSequence)
	stage = s.export(t, nil)
	s.requestEnd(t, "a", "s")
	s.Publish(t, endedSession("other", 1)...)
	pipelinetest.Await(t, "the bundle of a later session", func() bool { return len(s.bundles(t, "a", "other")) == 1 })
	s.Publish(t, trace("tr-3", "s", 3))
	s.requestEnd(t, "a", "s")
	pipelinetest.Await(t, "the second part", func() bool { return len(s.bundles(t, "a", "s")) >= 2 })
	if bundles := s.bundles(t, "a", "s"); len(bundles) == 2 {
		if _, rows := s.check(t, bundles[1]); fmt.Sprint(traceIDs(t, rows)) != "[tr-3]" {
			t.Errorf("the second part holds %s", traceIDs(t, rows))
		}
	}
	stage.Stop(t)
}

// Sessions whose ids begin alike and that are sealed concurrently within one second each have
// their own bundle, which states that second.
func TestSessionsWithTheSamePrefixHaveTheirOwnFiles(t *testing.T) {
	s := newSite(t)
	s.Register(t, pipelinetest.Card("ac", "a"))
	s.judge(t)
	const sessions = 16
	for n := range sessions {
		s.Publish(t, endedSession(fmt.Sprintf("session-%d", n), 1)...)
	}
	before := time.Now().Unix()
	s.export(t, nil)
	s.awaitBundles(t, sessions)
	paths := map[string]bool{}
	after := time.Now().Unix()
	for n := range sessions {
		bundles := s.bundles(t, "a", fmt.Sprintf("session-%d", n))
		if len(bundles) != 1 {
			t.Fatalf("session %d has %d bundles", n, len(bundles))
		}
		paths[bundles[0].Path] = true
		if at := bundles[0].ExportedAt.Unix(); at < before || at > after {
			t.Errorf("exported at %d, not within %d..%d", at, before, after)
		}
		if report, _ := s.check(t, bundles[0]); report.Opening.SessionID != bundles[0].SessionID {
			t.Errorf("%s is of session %q", bundles[0].Path, report.Opening.SessionID)
		}
	}
	if len(paths) != sessions {
		t.Errorf("%d files for %d sessions", len(paths), sessions)
	}
}

// A session that is open at a scheduled time is sealed, continues in the next part, and is
// recorded with the reason.
func TestScheduledSessionIsSealed(t *testing.T) {
	s := newSite(t)
	s.Register(t, pipelinetest.Card("ac", "a"))
	s.judge(t)
	s.export(t, func(cfg *exporter.Config) { cfg.Schedule = []string{"0 0 1 1 *", "@every 1s"} })
	s.Publish(t, trace("tr-1", "s", 1))
	s.awaitBundles(t, 1)
	b := s.bundles(t, "a", "s")[0]
	if report, _ := s.check(t, b); report.Opening.LastPart || b.Reason != "schedule" {
		t.Errorf("sealed for %q, last part: %v", b.Reason, report.Opening.LastPart)
	}
	pipelinetest.Await(t, "the run recorded", func() bool {
		return len(s.query(t, "SELECT 1 FROM seal_runs WHERE session_id = 's' AND outcome = 'sealed' AND reason = 'schedule'")) == 1
	})
}
