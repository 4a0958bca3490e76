package reconcile_test

import (
	"bytes"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/anchor"
	"github.com/plumbline/plumbline/aivs/anchor/anchortest"
	"github.com/plumbline/plumbline/aivs/keyring"
	"github.com/plumbline/plumbline/pipeline/exporter"
	"github.com/plumbline/plumbline/pipeline/keystore"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/reconcile"
	"github.com/plumbline/plumbline/pipeline/tlog"
)

// endedKey makes a session key of two days ago, which ended a day ago.
func (s *site) endedKey(t *testing.T) (*keystore.Opened, time.Time) {
	t.Helper()
	slot, ended := keystore.In(s.path("keys"), keyring.Session), time.Now().Add(-24*time.Hour)
	began := ended.Add(-24 * time.Hour)
	key, err := slot.New(t.Context(), keystore.Period{From: began}, began)
	if err == nil {
		_, err = slot.Rotate(t.Context(), keystore.Period{From: ended}, ended)
	}
	if err != nil {
		t.Fatal(err)
	}
	return key, ended
}

// Time stamps are checked against their bundles and the periods of the keys: an attacker with a
// stolen key that has ended gets a stamp of today for a bundle with a forged date.
func TestDamagedStampsAreReported(t *testing.T) {
	authority := anchortest.New(t)
	server := httptest.NewServer(authority)
	t.Cleanup(server.Close)
	roots, err := os.ReadFile(authority.Roots)
	if err != nil {
		t.Fatal(err)
	}
	s := &site{Rig: pipelinetest.New(t), dir: t.TempDir(), anchors: exporter.Anchors{TSAURL: server.URL, TSACertFile: authority.Roots}}
	if s.authorities, err = anchor.Authorities(roots); err != nil {
		t.Fatal(err)
	}
	stolen, ended := s.endedKey(t)
	s.run(t)
	s.fill(t)
	paths := []string{s.bundle(t, "x", 1), s.bundle(t, "x", 2), s.bundle(t, "y", 1)}
	for _, path := range paths {
		pipelinetest.Await(t, "the stamp of "+path, func() bool {
			_, err := os.Stat(path + anchor.TimestampSuffix)
			return err == nil
		})
	}
	if summary, found := s.compare(t); summary.Counts.Stamps != 3 || len(found) != 0 {
		t.Errorf("%d stamps, want 3; reported:\n%s", summary.Counts.Stamps, lines(found))
	}
	s.kept = s.dir
	restore := func() {
		s.dir = t.TempDir()
		if err := os.CopyFS(s.dir, os.DirFS(s.kept)); err != nil {
			t.Fatal(err)
		}
	}

	restore()
	s.write(t, s.bundle(t, "y", 1)+anchor.TimestampSuffix, s.read(t, s.bundle(t, "x", 1)+anchor.TimestampSuffix))
	s.demand(t, map[reconcile.Kind]string{reconcile.StampBad: `session "y"`})

	restore()
	s.remove(t, s.bundle(t, "x", 2)+anchor.TimestampSuffix)
	s.demand(t, map[reconcile.Kind]string{reconcile.StampMissing: `session "x"`})
	queue := tlog.Stamper{Queue: s.path("timestamps"), Log: slog.New(slog.DiscardHandler)}
	name, err := filepath.Rel(s.path("bundles"), s.bundle(t, "x", 2))
	if err == nil {
		err = queue.Open()
	}
	if err == nil {
		err = queue.Add(name)
	}
	if err != nil {
		t.Fatal(err)
	}
	if summary, found := s.compare(t); len(found) != 0 || summary.Counts.UnderWay == 0 {
		t.Errorf("a bundle that waits: %+v, reported:\n%s", summary.Counts, lines(found))
	}

	restore()
	forged, err := aivs.Build(&aivs.Input{SessionID: "z", AgentID: "a", ExportedAt: ended.Add(-time.Hour).Unix(), Part: 1, LastPart: true, TraceCount: 1,
		Generator: "Plumbline", GeneratorURL: "https://example.org", Rows: aivs.SliceRows([]aivs.Row{{ActionType: "aap.execute", ToolName: "aap.pay",
			Timestamp: float64(ended.Unix() - 7200), InputsJSON: `{"trace_id":"z-1"}`, OutputsJSON: "{}"}})}, stolen.Private)
	if err != nil {
		t.Fatal(err)
	}
	report, err := aivs.Verify(bytes.NewReader(forged.Bytes), aivs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	query, err := anchor.Query(report.SignatureBytes, nil)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := authority.Reply(query)
	if err != nil {
		t.Fatal(err)
	}
	s.write(t, s.path("bundles", "a", "forged.tar.gz"), forged.Bytes)
	s.write(t, s.path("bundles", "a", "forged.tar.gz"+anchor.TimestampSuffix), reply)
	s.demand(t, map[reconcile.Kind]string{reconcile.StampLate: `session "z" file "a/forged.tar.gz": time stamp: its time is`, reconcile.BundleUnrecorded: `session "z"`})

	s.authorities = nil
	if summary, found := s.compare(t); len(found) != 1 || len(summary.Skipped) != 1 || summary.Skipped[0] != "time stamps: there are 4, and no certificate of a trusted authority was given" {
		t.Errorf("without a trusted authority: skipped %q, reported:\n%s", summary.Skipped, lines(found))
	}
}
