package exporter

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/anchor"
	"github.com/plumbline/plumbline/aivs/keyring"
	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/durable"
	"github.com/plumbline/plumbline/pipeline/keystore"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/seal"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
)

// accepted verifies a bundle with one pinned key and the key list.
func accepted(t *testing.T, cfg *Config, bundle []byte, pin ed25519.PublicKey) *aivs.Report {
	t.Helper()
	ring, err := keystore.ReadList(keystore.Slot{Path: cfg.keyFile()}.List())
	if err != nil {
		t.Fatal(err)
	}
	report, err := aivs.Verify(bytes.NewReader(bundle), aivs.Options{Signer: func(key ed25519.PublicKey, at time.Time) error {
		return ring.Accept([]ed25519.PublicKey{pin}, key, keyring.Session, at)
	}})
	if err != nil || !report.Intact {
		t.Errorf("not accepted: %v %+v", err, report)
	}
	return report
}

// A plan that was fixed under a key that has been rotated since is carried out under the next
// key, dated within that key's period. Before the next key is valid nothing is sealed.
func TestPlanOfARotatedKey(t *testing.T) {
	rig, cfg := site(t)
	publishGaps(t, rig, "s")
	crashAfterPlan(t, rig, cfg)
	slot := keystore.Slot{Path: cfg.keyFile(), Purpose: keyring.Session}
	first, err := slot.Load(t.Context(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	next, err := slot.Rotate(t.Context(), keystore.Period{From: time.Now().Add(2 * time.Second)}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	sealed(t, rig, cfg, "s")
	bundles := bundlesOf(t, cfg)
	for path, bundle := range bundles {
		if report := accepted(t, cfg, bundle, first.Entry.Public()); report.KeyID != next.Entry.KeyID {
			t.Errorf("%s is signed by %s, want %s", path, report.KeyID, next.Entry.KeyID)
		}
	}
	if len(bundles) != 1 {
		t.Errorf("%d bundles", len(bundles))
	}
}

// halfOwner is a term whose process owns some partitions, and another one the others.
type halfOwner struct{ Source }

func (halfOwner) Owned() (some [subject.Partitions]bool) {
	some[0] = true
	return some
}

func (halfOwner) Confirm(context.Context) error { return nil }
func (halfOwner) Position() uint64              { return 0 }

// wholeOwner is a term whose process owns all partitions.
type wholeOwner struct{ halfOwner }

func (wholeOwner) Owned() [subject.Partitions]bool { return everyPartition }

// withSigner returns an exporter on servers of its own, with its signing key, and its configuration.
func withSigner(t *testing.T) (*pipelinetest.Rig, *exporter, *Config) {
	t.Helper()
	rig, cfg := pipelinetest.New(t), Default()
	cfg.Common, cfg.DataDir = rig.Common(), t.TempDir()
	e, _, err := open(t.Context(), &cfg, pipelinetest.Env(t, "exporter"), rig.Client, "here")
	if err == nil {
		err = e.openSigner(t.Context(), cfg.keyFile())
	}
	if err != nil {
		t.Fatal(err)
	}
	return rig, e, &cfg
}

// An exporter that is alone signs with the key that it has. One that has become alone, because another one
// ended, does not when that one has signed with a key that this one does not see yet: it would sign with a key
// after its successor.
func TestSignerThatBecomesAlone(t *testing.T) {
	_, e, _ := withSigner(t)
	noteOther := func() {
		t.Helper()
		if _, err := e.seals.Put(t.Context(), seal.SignerKey, []byte("rotated")); err != nil {
			t.Fatal(err)
		}
	}
	noteOther()
	for _, term := range []Source{wholeOwner{}, halfOwner{}} {
		e.begin(term)
		if err := e.noteSigner(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	noteOther()
	e.begin(wholeOwner{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	noted := make(chan error, 1)
	go func() { noted <- e.noteSigner(ctx) }()
	pipelinetest.Await(t, "the exporter to wait", func() bool { return len(noted) > 0 || pipelinetest.Retries(t, e.env, "record the signing key") > 0 })
	cancel()
	if err := <-noted; !errors.Is(err, context.Canceled) {
		t.Errorf("it signs: %v", err)
	}
}

// An exporter that does not see the rotated key yet signs nothing after another one has begun to sign with
// it. It does not wait for a key that it has replaced itself.
func TestSignerWaitsForTheKeyOfOthers(t *testing.T) {
	rig, e, cfg := withSigner(t)
	e.begin(halfOwner{})
	signer := func() string {
		t.Helper()
		noted, _, err := brokertest.Bucket(t, rig.Client, stream.Seals).GetNewest(t.Context(), seal.SignerKey)
		if err != nil {
			t.Fatal(err)
		}
		return string(noted)
	}
	first := e.keyID
	if err := e.noteSigner(t.Context()); err != nil || signer() != first {
		t.Fatalf("the first key: %v, noted %s", err, signer())
	}
	elsewhere := t.TempDir()
	if err := errors.Join(os.CopyFS(elsewhere, os.DirFS(filepath.Dir(cfg.keyFile()))), os.Chmod(filepath.Join(elsewhere, "session.key"), 0o600)); err != nil {
		t.Fatal(err)
	}
	next, err := keystore.In(elsewhere, keyring.Session).Rotate(t.Context(), keystore.Period{From: time.Now()}, time.Now())
	if err == nil {
		_, err = e.seals.Put(t.Context(), seal.SignerKey, []byte(next.Entry.KeyID)) // by another exporter
	}
	if err != nil {
		t.Fatal(err)
	}
	noted := make(chan error, 1)
	go func() { noted <- e.noteSigner(t.Context()) }()
	pipelinetest.Await(t, "the exporter to wait", func() bool { return pipelinetest.Retries(t, e.env, "record the signing key") > 0 })
	for _, name := range []string{keystore.ListName, "session.key"} {
		content, err := os.ReadFile(filepath.Join(elsewhere, name))
		if err == nil {
			err = durable.WriteFile(filepath.Join(filepath.Dir(cfg.keyFile()), name), content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := <-noted; err != nil || e.keyID != next.Entry.KeyID || signer() != next.Entry.KeyID {
		t.Errorf("%v, signing with %s, want %s", err, e.keyID, next.Entry.KeyID)
	}
	if _, err := e.seals.Put(t.Context(), seal.SignerKey, []byte(first)); err != nil { // by one that has not adopted it
		t.Fatal(err)
	}
	if err := e.noteSigner(t.Context()); err != nil || signer() != next.Entry.KeyID {
		t.Errorf("%v, noted %s, want the newer key %s", err, signer(), next.Entry.KeyID)
	}
}

func ask(t *testing.T, env *service.Env, path string) (kind string, body []byte) {
	t.Helper()
	recorder := httptest.NewRecorder()
	env.Routes.Before(http.NotFoundHandler()).ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
	if recorder.Code != http.StatusOK {
		t.Fatalf("%s: %d", path, recorder.Code)
	}
	return recorder.Header().Get("Content-Type"), recorder.Body.Bytes()
}

// The running exporter signs with the new key, and serves both.
func TestKeyRotationDuringARun(t *testing.T) {
	rig, cfg := site(t)
	cfg.ClickHouse = rig.ClickHouse()
	env := pipelinetest.Env(t, "exporter")
	pipelinetest.Go(t, func(ctx context.Context) error { return Serve(ctx, cfg, env) })
	publishGaps(t, rig, "first")
	pipelinetest.Await(t, "the first session", func() bool { return sealedRecord(t, rig, "first") })
	slot := keystore.Slot{Path: cfg.keyFile(), Purpose: keyring.Session}
	first, err := slot.Load(t.Context(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	next, err := slot.Rotate(t.Context(), keystore.Period{From: time.Now()}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	publishGaps(t, rig, "second")
	pipelinetest.Await(t, "the second session", func() bool { return sealedRecord(t, rig, "second") })
	signers := map[string]bool{}
	for _, bundle := range bundlesOf(t, cfg) {
		signers[accepted(t, cfg, bundle, first.Entry.Public()).KeyID] = true
	}
	if !signers[first.Entry.KeyID] || !signers[next.Entry.KeyID] {
		t.Errorf("signed by %v", signers)
	}
	kind, set := ask(t, env, "/.well-known/jwks.json")
	var keys struct{ Keys []struct{ Kid, X string } }
	if err := json.Unmarshal(set, &keys); err != nil || kind != "application/jwk-set+json" {
		t.Fatalf("%s %v: %s", kind, err, set)
	}
	if k := keys.Keys; len(k) != 3 || k[0].Kid != first.Entry.KeyID || k[1].Kid != next.Entry.KeyID || k[2].Kid != "aivs-session-key" || k[2].X != k[1].X {
		t.Errorf("key set is %s", set)
	}
	if _, err := keystore.In(filepath.Dir(cfg.keyFile()), keyring.Micro).Open(t.Context(), time.Now()); err != nil { // as another process would
		t.Fatal(err)
	}
	_, list := ask(t, env, "/v1/keys")
	if ring, err := keyring.Parse(list); err != nil || len(ring.Keys()) != 3 {
		t.Errorf("%v: %s", err, list)
	}
}

// The same holds for the log's key: the head is signed again at once, the next proof is by the
// new key, and earlier proofs stay valid by the old key. Every key is in the ledger.
func TestLogKeyRotationDuringARun(t *testing.T) {
	rig, cfg := site(t)
	cfg.ClickHouse, cfg.Anchors.TransparencyLog = rig.ClickHouse(), true
	env := pipelinetest.Env(t, "exporter")
	pipelinetest.Go(t, func(ctx context.Context) error { return Serve(ctx, cfg, env) })
	publishGaps(t, rig, "first")
	pipelinetest.Await(t, "the first session", func() bool { return sealedRecord(t, rig, "first") })
	_, before := ask(t, env, "/v1/log/key")
	next, err := keystore.In(filepath.Dir(cfg.keyFile()), keyring.Log).Rotate(t.Context(), keystore.Period{From: time.Now()}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var keys []note.Verifier // the one in use first
	pipelinetest.Await(t, "the rotated key", func() bool {
		_, shown := ask(t, env, "/v1/log/key")
		keys = nil
		for line := range strings.Lines(string(shown)) {
			key, err := anchor.ParseVerifier(line)
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, key)
		}
		return len(keys) == 2 && strings.HasSuffix(string(shown), string(before))
	})
	_, signed := ask(t, env, "/v1/log/checkpoint")
	if head, err := anchor.OpenCheckpoint(signed, keys[0]); err != nil || head.Size != 1 {
		t.Errorf("the head by the new key: %+v, %v", head, err)
	}
	for path, bundle := range bundlesOf(t, cfg) {
		logged(t, path, bundle, keys[1])
	}
	publishGaps(t, rig, "second")
	pipelinetest.Await(t, "the second session", func() bool { return sealedRecord(t, rig, "second") })
	signers := map[string]int{}
	for path := range bundlesOf(t, cfg) {
		proof := proofOf(t, path)
		for i, key := range keys {
			if _, err := anchor.OpenCheckpoint(proof.Checkpoint, key); err == nil {
				signers[[]string{"new", "old"}[i]]++
			}
		}
	}
	if signers["new"] != 1 || signers["old"] != 1 {
		t.Errorf("proofs are signed %v", signers)
	}
	pipelinetest.Await(t, "the keys in the ledger", func() bool {
		files, err := os.ReadFile(filepath.Join(cfg.ledgerDir(), "ledger-000001.jsonl"))
		return err == nil && strings.Count(string(files), `"kind":"signing_key"`) == 3 && strings.Contains(string(files), `"key_id":"`+next.Entry.KeyID+`","kind":"signing_key","public_key"`)
	})
}
