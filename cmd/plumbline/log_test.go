package main

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aivs/anchor"
	"github.com/plumbline/plumbline/aivs/anchor/anchortest"
	"github.com/plumbline/plumbline/pipeline/tlog"
)

// shownLog is a published log.
type shownLog struct {
	*tlog.Log
	url, key string
}

func showLog(t *testing.T) *shownLog {
	t.Helper()
	log, err := tlog.OpenLog(t.TempDir(), tlog.LogKey{Origin: "example.org/log", Private: seededKey(5)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	mux := http.NewServeMux()
	mux.HandleFunc("GET /checkpoint", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(log.Checkpoint()) })
	mux.HandleFunc("GET /cosigned", func(w http.ResponseWriter, r *http.Request) {
		if log.Cosigned() == nil {
			http.NotFound(w, r)
		}
		_, _ = w.Write(log.Cosigned())
	})
	mux.HandleFunc("GET /tile/{path...}", func(w http.ResponseWriter, r *http.Request) {
		data, err := log.Tile(r.PathValue("path"))
		if err != nil {
			http.NotFound(w, r)
		}
		_, _ = w.Write(data)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	key, err := anchor.VerifierKey("example.org/log", seededKey(5).Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	return &shownLog{log, server.URL, key}
}

func (l *shownLog) grow(t *testing.T, from, to int) []*anchor.Proof {
	t.Helper()
	var leaves [][]byte
	for i := from; i < to; i++ {
		leaf, err := anchor.Leaf(fmt.Sprint(i), fmt.Sprintf("%064x", i))
		if err != nil {
			t.Fatal(err)
		}
		leaves = append(leaves, leaf)
	}
	proofs, err := l.Append(leaves...)
	if err != nil {
		t.Fatal(err)
	}
	return proofs
}

func (l *shownLog) verify(t *testing.T, command logVerifyCommand) (said string, code int) {
	t.Helper()
	var out bytes.Buffer
	command.URL, command.Key = l.url, []string{l.key}
	err := command.Run(t.Context(), &console{out: &out})
	if err != nil {
		fmt.Fprintln(&out, err)
	}
	return out.String(), exitCode(err)
}

// A kept checkpoint, or a bundle's proof, shows whether the log still extends it.
func TestKeptCheckpointIsCompared(t *testing.T) {
	log, dir := showLog(t), t.TempDir()
	kept := filepath.Join(dir, "kept")
	log.grow(t, 0, 3)
	if said, code := log.verify(t, logVerifyCommand{Save: kept}); code != exitGood || !strings.Contains(said, "SKIP  that it only grew") {
		t.Errorf("exit code %d, output:\n%s", code, said)
	}
	bundle := filepath.Join(dir, "x.tar.gz")
	if err := tlog.PlaceProof(bundle, log.grow(t, 3, 300)[0]); err != nil {
		t.Fatal(err)
	}
	log.grow(t, 300, 400)
	said, code := log.verify(t, logVerifyCommand{Kept: []string{kept, bundle + anchor.ProofSuffix}, Save: kept})
	if code != exitGood || !strings.Contains(said, "it extends "+kept+", of 3 leaves") || !strings.Contains(said, "of 300 leaves") || strings.Contains(said, "SKIP") {
		t.Errorf("exit code %d, output:\n%s", code, said)
	}
	for what, other := range map[string]struct {
		from, to int
		want     string
	}{"rolled back": {0, 50, "rolled back: it had 400 leaves and has 50"}, "rewritten": {1, 500, "rewritten"}} {
		again := showLog(t)
		again.grow(t, other.from, other.to)
		before, err := os.ReadFile(kept)
		if err != nil {
			t.Fatal(err)
		}
		said, code := again.verify(t, logVerifyCommand{Kept: []string{kept}, Save: kept})
		if code != exitBad || !strings.Contains(said, "FAIL  "+kept) || !strings.Contains(said, other.want) {
			t.Errorf("%s: exit code %d, output:\n%s", what, code, said)
		}
		if said, code := again.verify(t, logVerifyCommand{Kept: []string{kept}, JSON: true}); code != exitBad || !strings.Contains(said, `"verified":false`) {
			t.Errorf("%s: exit code %d, output:\n%s", what, code, said)
		}
		if after, err := os.ReadFile(kept); err != nil || !bytes.Equal(before, after) {
			t.Errorf("%s: the kept checkpoint was overwritten: error %v", what, err)
		}
	}
	for _, bad := range []logVerifyCommand{{Kept: []string{filepath.Join(dir, "nothing")}}, {Witness: []string{"nobody"}}} {
		if said, code := log.verify(t, bad); code != exitUsage {
			t.Errorf("%+v: exit code %d, output:\n%s", bad, code, said)
		}
	}
}

func TestWitnessesAreRequired(t *testing.T) {
	log := showLog(t)
	log.grow(t, 0, 3)
	a, b := anchortest.NewWitness("a.example", 1), anchortest.NewWitness("b.example", 2)
	if said, code := log.verify(t, logVerifyCommand{Witness: []string{a.Key()}}); code != exitBad || !strings.Contains(said, `witness "a.example" has not cosigned the log at 3 leaves`) {
		t.Errorf("exit code %d, output:\n%s", code, said)
	}
	parsed, err := anchor.ParseWitness(a.Key())
	if err == nil {
		err = log.Cosign(a.Cosign(log.Checkpoint(), time.Now()), []*anchor.Witness{parsed}, time.Now())
	}
	if err != nil {
		t.Fatal(err)
	}
	log.grow(t, 3, 9)
	if said, code := log.verify(t, logVerifyCommand{Witness: []string{a.Key()}}); code != exitGood || !strings.Contains(said, "PASS  witness a.example has cosigned 3 leaves at 20") {
		t.Errorf("exit code %d, output:\n%s", code, said)
	}
	if said, code := log.verify(t, logVerifyCommand{Witness: []string{a.Key(), b.Key()}}); code != exitBad || !strings.Contains(said, `witness "b.example" has not`) {
		t.Errorf("exit code %d, output:\n%s", code, said)
	}
}

// After a rotation the log's head has a signature of the new key, and what was kept one of the old key. The error says
// that both keys are needed.
func TestRotationOfTheLogsKeyIsNamed(t *testing.T) {
	log, kept := showLog(t), filepath.Join(t.TempDir(), "kept")
	log.grow(t, 0, 3)
	if said, code := log.verify(t, logVerifyCommand{Save: kept}); code != exitGood {
		t.Fatalf("exit code %d, output:\n%s", code, said)
	}
	before := log.key
	if err := log.Use(tlog.LogKey{Private: seededKey(6), Earlier: []ed25519.PublicKey{seededKey(5).Public().(ed25519.PublicKey)}}); err != nil {
		t.Fatal(err)
	}
	after, err := anchor.VerifierKey("example.org/log", seededKey(6).Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	const hint = "after a rotation of the log's key give all lines of /v1/log/key"
	if said, code := log.verify(t, logVerifyCommand{}); code != exitBad || !strings.Contains(said, hint) {
		t.Errorf("with the old key: exit code %d, output:\n%s", code, said)
	}
	log.key = after
	if said, code := log.verify(t, logVerifyCommand{Kept: []string{kept}}); code != exitUsage || !strings.Contains(said, hint) {
		t.Errorf("what the old key signed, with the new key: exit code %d, output:\n%s", code, said)
	}
	log.key = after + "\n" + before
	if said, code := log.verify(t, logVerifyCommand{Kept: []string{kept}}); code != exitGood {
		t.Errorf("with both keys: exit code %d, output:\n%s", code, said)
	}
}
