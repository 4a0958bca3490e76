package queries_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/engine/enginetest"
	"github.com/plumbline/plumbline/pipeline/keyfile"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// checkCorpusIsJudged requires that each trace of the corpus is stored and judged once, and that the violations
// are those of the corpus, id for id.
func (s *site) checkCorpusIsJudged(t *testing.T, corpus *pipelinetest.Corpus) {
	counts, err := s.Store.Counts(t.Context())
	if err != nil || counts.Traces != uint64(len(corpus.Records)) || counts.Verdicts != counts.Traces || counts.CardUnknown != 0 || counts.DeadLetters != 0 {
		t.Errorf("counts are %+v, error %v", counts, err)
	}
	found, err := s.Store.Violations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	corpus.CheckViolations(t, found)
}

// checkCorpusIsSealed requires one bundle for each session, which verifies, with the session's traces in the order
// in which they were published. Each session has a verdict, whose only findings are hand-overs to people
// whose answers were not recorded, and six loops.
func (s *site) checkCorpusIsSealed(t *testing.T, all *truth) {
	order := map[store.SessionKey][]string{}
	for _, trace := range all.traces {
		key := store.SessionKey{AgentID: trace.AgentID, SessionID: schema.SessionID(trace)}
		order[key] = append(order[key], trace.TraceID)
	}
	bundles, err := s.Store.Bundles(t.Context(), "", "")
	if err != nil || len(bundles) != len(order) {
		t.Errorf("%d bundles, want %d; error %v", len(bundles), len(order), err)
	}
	key, err := keyfile.Load(filepath.Join(s.dir, "keys", "session.key"))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range bundles {
		got, want := s.sealedTraces(t, b, key.Public().(ed25519.PublicKey)), order[store.SessionKey{AgentID: b.AgentID, SessionID: b.SessionID}]
		if !slices.Equal(got, want) {
			t.Errorf("%s holds\n%s, want\n%s", b.Path, got, want)
		}
	}
	verdicts, err := s.Store.SessionVerdicts(t.Context(), "", "")
	if err != nil || len(verdicts) != len(order) {
		t.Errorf("%d verdicts on %d sessions, error %v", len(verdicts), len(order), err)
	}
	found, traces := map[string]int64{}, int64(0)
	for _, v := range verdicts {
		traces += v.Traces.Total
		for kind, n := range v.FindingCounts {
			found[kind] += n
		}
	}
	want := map[string]int64{schema.EscalationUnanswered: int64(len(all.unanswered()))}
	if n := all.loops(); n > 0 {
		want[schema.ActionLoop] = n
	}
	if !maps.Equal(found, want) || traces != int64(len(all.traces)) {
		t.Errorf("findings of %d traces are %v, want %v", traces, found, want)
	}
}

// sealedTraces verifies the file of a bundle and returns the ids of its traces in the order of their rows.
func (s *site) sealedTraces(t *testing.T, b store.Bundle, key ed25519.PublicKey) (ids []string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(s.dir, "bundles", b.Path))
	if err != nil {
		t.Fatal(err)
	}
	if schema.DigestOf(data) != b.SHA256 {
		t.Errorf("%s is not the file in table bundles", b.Path)
	}
	report, err := aivs.Verify(bytes.NewReader(data), aivs.Options{Keys: []ed25519.PublicKey{key}, Row: func(r *aivs.Row) {
		var inputs struct {
			TraceID string `json:"trace_id"`
		}
		if err := json.Unmarshal([]byte(r.InputsJSON), &inputs); err != nil {
			t.Errorf("%s: %v", b.Path, err)
		}
		ids = append(ids, inputs.TraceID)
	}})
	if err != nil || !report.Intact || len(ids) < 2 {
		t.Fatalf("%s: %v %+v", b.Path, err, report)
	}
	return ids[1 : len(ids)-1] // without the rows that open and seal
}

// mostOnDisk is how many bytes a trace of the corpus may take in table traces, raw record included, once the
// parts are merged. docs/SCALING.md has the other tables. Fewer traces compress less: a trace of the whole corpus takes 333 bytes, one of
// every sixth session 362. So the bound is not for shards, and not for less than every boundedNth session.
const (
	mostOnDisk = 350
	boundedNth = 3
)

func (s *site) checkDisk(t *testing.T) {
	t.Helper()
	for _, table := range []string{"traces", "verdicts", "drift_points"} {
		s.Exec(t, "OPTIMIZE TABLE %s FINAL", s.Local(table))
		bytes := s.Number(t, "SELECT toUInt64(sum(bytes_on_disk) / sum(rows)) FROM system.parts WHERE active AND database = currentDatabase() AND table = '"+s.Local(table)+"'")
		t.Logf("table %s takes %d bytes a trace", table, bytes)
		if table == "traces" && bytes > mostOnDisk && *nth <= boundedNth && !enginetest.Sharded() {
			t.Errorf("a trace takes %d bytes in table traces, want at most %d", bytes, mostOnDisk)
		}
	}
}
