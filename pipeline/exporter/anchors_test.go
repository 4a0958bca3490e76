package exporter

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/anchor"
	"github.com/plumbline/plumbline/aivs/anchor/anchortest"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/tlog"
	"github.com/plumbline/plumbline/schema"
)

// bundlesOf returns all bundles of an exporter by path.
func bundlesOf(t *testing.T, cfg *Config) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	err := filepath.WalkDir(cfg.bundleDir(), func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".tar.gz") {
			found[path], err = os.ReadFile(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// proofOf reads the proof next to a bundle.
func proofOf(t *testing.T, path string) *anchor.Proof {
	t.Helper()
	text, err := os.ReadFile(path + anchor.ProofSuffix)
	if err != nil {
		t.Fatal(err)
	}
	proof, err := anchor.ParseProof(text)
	if err != nil {
		t.Fatal(err)
	}
	return proof
}

// logged checks the proof next to a bundle.
func logged(t *testing.T, path string, bundle []byte, key note.Verifier) *anchor.Proof {
	t.Helper()
	report, err := aivs.Verify(bytes.NewReader(bundle), aivs.Options{RequireSignature: true})
	if err != nil || !report.Intact {
		t.Fatalf("%v %+v", err, report)
	}
	proof := proofOf(t, path)
	leaf, err := anchor.Leaf(report.SessionID, report.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := proof.Verify(leaf, key); err != nil {
		t.Error(err)
	}
	return proof
}

// stamped checks the time stamp next to a bundle.
func stamped(t *testing.T, path string, bundle []byte, authority *anchortest.Authority) {
	t.Helper()
	report, err := aivs.Verify(bytes.NewReader(bundle), aivs.Options{RequireSignature: true})
	if err != nil {
		t.Fatal(err)
	}
	roots, err := os.ReadFile(authority.Roots)
	if err != nil {
		t.Fatal(err)
	}
	trusted, err := anchor.Authorities(roots)
	if err != nil {
		t.Fatal(err)
	}
	pipelinetest.Await(t, "the time stamp", func() bool {
		reply, err := os.ReadFile(path + anchor.TimestampSuffix)
		if errors.Is(err, fs.ErrNotExist) {
			return false
		}
		if err == nil {
			_, err = anchor.VerifyTimestamp(reply, report.SignatureBytes, trusted, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		return true
	})
}

// merkleCard registers a card that commits its agent to a log.
func merkleCard(t *testing.T, rig *pipelinetest.Rig) {
	t.Helper()
	rig.Register(t, bytes.Replace(pipelinetest.Card("ac-merkle", "a"), []byte(`"queryable":false`), []byte(`"queryable":false,"tamper_evidence":"merkle"`), 1))
}

func publishMerkle(t *testing.T, rig *pipelinetest.Rig, session string) {
	t.Helper()
	rig.Publish(t, pipelinetest.Trace("tr-"+session, "a", "ac-merkle", session, "2026-02-01T00:00:00Z", "search"))
	requestEnd(t, rig, session)
}

// With log and authority, each bundle has a proof and a stamp next to it, also after restarts,
// and the commitment of a card to a log is met.
func TestBundlesAreAnchored(t *testing.T) {
	authority := anchortest.New(t)
	server := httptest.NewServer(authority)
	t.Cleanup(server.Close)
	rig, cfg := site(t)
	merkleCard(t, rig)
	cfg.ClickHouse = rig.ClickHouse()
	cfg.Anchors = Anchors{TSAURL: server.URL, TSACertFile: authority.Roots, TransparencyLog: true}
	var key note.Verifier
	for _, session := range []string{"first", "second"} {
		env := pipelinetest.Env(t, "exporter")
		stage := pipelinetest.Go(t, func(ctx context.Context) error { return Serve(ctx, cfg, env) })
		publishMerkle(t, rig, session)
		pipelinetest.Await(t, "the session", func() bool { return sealedRecord(t, rig, session) })
		_, vkey := ask(t, env, "/v1/log/key")
		var err error
		if key, err = anchor.ParseVerifier(string(vkey)); err != nil {
			t.Fatal(err)
		}
		_, signed := ask(t, env, "/v1/log/checkpoint")
		if c, err := anchor.OpenCheckpoint(signed, key); err != nil || c.Origin != "plumbline/default" {
			t.Errorf("checkpoint %+v: %v", c, err)
		}
		for path, bundle := range bundlesOf(t, cfg) {
			logged(t, path, bundle, key)
			stamped(t, path, bundle, authority)
		}
		stage.Stop(t)
		verdicts, err := rig.Store.SessionVerdicts(t.Context(), "a", session)
		if err != nil || len(verdicts) != 1 || verdicts[0].FindingCounts[schema.NoInclusionProof] != 0 {
			t.Errorf("%+v, %v", verdicts, err)
		}
	}
	view, err := tlog.OpenView(cfg.logDir(), key)
	if err != nil {
		t.Fatal(err)
	}
	for path, bundle := range bundlesOf(t, cfg) {
		older, opening := anchor.OpenCheckpoint(logged(t, path, bundle, key).Checkpoint, key)
		if err = errors.Join(err, opening); opening == nil {
			err = errors.Join(err, view.GoesOnFrom(older))
		}
	}
	if err := errors.Join(err, view.Check(), view.Close()); err != nil || view.Size() != 2 {
		t.Errorf("a log of %d: %v", view.Size(), err)
	}
}

// Without a log a card's commitment is not met, and the verdict says so.
func TestMerkleCommitmentWithoutALog(t *testing.T) {
	rig, cfg := site(t)
	merkleCard(t, rig)
	publishMerkle(t, rig, "s")
	verdicts := sealed(t, rig, cfg, "s")
	if len(verdicts) != 1 || verdicts[0].FindingCounts[schema.NoInclusionProof] != 1 || verdicts[0].RecommendedAction != schema.Review || !verdicts[0].Verified {
		t.Errorf("%+v", verdicts)
	}
	for path := range bundlesOf(t, cfg) {
		if _, err := os.Stat(path + anchor.ProofSuffix); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("there is a proof, although no log is configured: %v", err)
		}
	}
}

// Sessions are sealed while the authority is unavailable.
func TestSealingDoesNotWaitForTheAuthority(t *testing.T) {
	authority := anchortest.New(t)
	rig, cfg := site(t)
	cfg.ClickHouse = rig.ClickHouse()
	server := httptest.NewServer(nil)
	server.Close() // its address no longer answers
	cfg.Anchors = Anchors{TSAURL: server.URL, TSACertFile: authority.Roots}
	env := pipelinetest.Env(t, "exporter")
	pipelinetest.Go(t, func(ctx context.Context) error { return Serve(ctx, cfg, env) })
	publishGaps(t, rig, "s")
	pipelinetest.Await(t, "the session", func() bool { return sealedRecord(t, rig, "s") })
	waiting, err := os.ReadDir(filepath.Join(cfg.DataDir, "timestamps"))
	if err != nil || len(waiting) != 1 {
		t.Errorf("%d bundles wait: %v", len(waiting), err)
	}
}

func TestAnchorsAreValidated(t *testing.T) {
	for want, a := range map[string]Anchors{
		"tsa_url: want http":        {TSAURL: "nowhere", TSACertFile: "f"},
		"tsa_cert_file: is empty":   {TSAURL: "http://tsa.example"},
		"log_origin: \"two words\"": {LogOrigin: "two words"},
		"log_witness: \"nobody\"":   {LogWitnesses: []string{"nobody"}},
	} {
		cfg := Default()
		cfg.Anchors = a
		if faults := cfg.Validate(); len(faults) != 1 || !strings.HasPrefix(faults[0].String(), want) {
			t.Errorf("%v, want %s", faults, want)
		}
	}
}

// An existing proof stays unchanged although the log has grown, since it may be copied already.
// An invalid proof is replaced.
func TestValidProofIsNotReplaced(t *testing.T) {
	cfg := Default()
	cfg.DataDir = t.TempDir()
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{3}, ed25519.SeedSize))
	k := &keeper{cfg: &cfg}
	var err error
	if k.anchors.log, err = tlog.OpenLog(cfg.logDir(), tlog.LogKey{Origin: "log.example", Private: private}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.anchors.close() })
	if err := os.MkdirAll(cfg.bundleDir(), 0o750); err != nil {
		t.Fatal(err)
	}
	logBundle := func(session string) (proof []byte) {
		t.Helper()
		b := placedBundle{File: session + ".tar.gz", Session: session, SHA256: schema.DigestOf([]byte(session)).String()}
		err := k.logBundles([]placedBundle{b})
		if err == nil {
			proof, err = os.ReadFile(filepath.Join(cfg.bundleDir(), b.File+anchor.ProofSuffix))
		}
		if err != nil {
			t.Fatal(err)
		}
		return proof
	}
	first := logBundle("first")
	second := logBundle("second")
	if again := logBundle("first"); !bytes.Equal(again, first) {
		t.Error("the proof was replaced")
	}
	for what, wrong := range map[string][]byte{"another's": second, "damaged": first[:len(first)/2]} {
		if err := os.WriteFile(filepath.Join(cfg.bundleDir(), "first.tar.gz"+anchor.ProofSuffix), wrong, 0o600); err != nil {
			t.Fatal(err)
		}
		if again := logBundle("first"); bytes.Equal(again, wrong) {
			t.Errorf("a proof that is %s was kept", what)
		}
	}
}

// A session is not sealed while the log cannot be written. Once it is sealed it has its proof,
// and its card's commitment is met.
func TestSessionWaitsForTheLog(t *testing.T) {
	rig, cfg := site(t)
	merkleCard(t, rig)
	cfg.ClickHouse, cfg.Anchors.TransparencyLog = rig.ClickHouse(), true
	env := pipelinetest.Env(t, "exporter")
	pipelinetest.Go(t, func(ctx context.Context) error { return Serve(ctx, cfg, env) })
	pipelinetest.Await(t, "the stage", func() bool { return env.Health.Reported().Ready })
	away := cfg.logDir() + ".away" // its files stay open, but no new checkpoint can be written
	if err := os.Rename(cfg.logDir(), away); err != nil {
		t.Fatal(err)
	}
	publishMerkle(t, rig, "s")
	pipelinetest.Await(t, "the bundle", func() bool { return len(bundlesOf(t, cfg)) == 1 })
	if verdicts, err := rig.Store.SessionVerdicts(t.Context(), "a", "s"); sealedRecord(t, rig, "s") || len(verdicts) != 0 || err != nil {
		t.Errorf("the session is sealed without a proof: %+v, %v", verdicts, err)
	}
	pipelinetest.Await(t, "readiness to name it", func() bool {
		state := env.Health.Reported()
		return !state.Ready && state.Down["seal sessions"] != ""
	})
	if err := os.Rename(away, cfg.logDir()); err != nil {
		t.Fatal(err)
	}
	pipelinetest.Await(t, "the session", func() bool { return sealedRecord(t, rig, "s") })
	_, vkey := ask(t, env, "/v1/log/key")
	key, err := anchor.ParseVerifier(string(vkey))
	if err != nil {
		t.Fatal(err)
	}
	for path, bundle := range bundlesOf(t, cfg) {
		logged(t, path, bundle, key)
	}
	verdicts, err := rig.Store.SessionVerdicts(t.Context(), "a", "s")
	if err != nil || len(verdicts) != 1 || verdicts[0].FindingCounts[schema.NoInclusionProof] != 0 {
		t.Errorf("%+v, %v", verdicts, err)
	}
}
