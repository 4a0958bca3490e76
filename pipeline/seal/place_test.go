package seal_test

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/pipeline/seal"
)

var key = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))

// place places a part of n rows, each with these inputs and cost.
func place(dir string, rows []aivs.Row, plan seal.Record) (*aivs.Bundle, error) {
	plan.Part, plan.File = 1, seal.File("a", "s", 0)
	in := &aivs.Input{
		SessionID: "s", AgentID: "a", Part: 1, TraceCount: int64(len(rows)), Generator: "g", GeneratorURL: "u", Rows: aivs.SliceRows(rows),
		Members: []aivs.Member{
			{Name: aivs.TracesMember, Data: []byte(strings.Repeat("{}\n", len(rows)))}, {Name: aivs.VerdictsMember},
		},
	}
	return seal.Place(dir, &seal.Part{AgentID: "a", SessionID: "s", Plan: plan}, in, key)
}

func row(inputs string, cost int64) aivs.Row {
	return aivs.Row{ActionType: "aap.execute", ToolName: "aap.search", InputsJSON: inputs, OutputsJSON: "{}", CostCents: cost}
}

// An error that no retry can cure must differ from one that a retry can: the first concerns one
// session, the second all sessions.
func TestUnfitPartIsReported(t *testing.T) {
	mine := seal.Record{KeyID: aivs.KeyID(key.Public().(ed25519.PublicKey))}
	if _, err := place(t.TempDir(), []aivs.Row{row("{}", -1)}, mine); !errors.Is(err, seal.ErrUnfit) {
		t.Errorf("a negative cost: %v", err)
	}
	if _, err := place(t.TempDir(), []aivs.Row{row("{}", 0)}, seal.Record{KeyID: "another"}); !errors.Is(err, seal.ErrOtherKey) {
		t.Errorf("a plan of another key: %v", err)
	}
	taken := t.TempDir()
	file := filepath.Join(taken, seal.File("a", "s", 0))
	if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o755), os.WriteFile(file, []byte("?"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := place(taken, []aivs.Row{row("{}", 0)}, mine); !errors.Is(err, seal.ErrTaken) {
		t.Errorf("a name that is taken: %v", err)
	}
}

// A session of repetitive traces compresses well. Its bundle is still accepted by readers and by
// the exporter that finds it after a crash.
func TestRepetitiveBundleIsAdopted(t *testing.T) {
	plan := seal.Record{KeyID: aivs.KeyID(key.Public().(ed25519.PublicKey))}
	inputs := `{"trace_sha256":"44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","x":"` + strings.Repeat("x", 700<<10) + `"}`
	rows := make([]aivs.Row, 120)
	for i := range rows {
		rows[i] = row(inputs, 0)
	}
	dir := t.TempDir()
	made, err := place(dir, rows, plan)
	if err != nil {
		t.Fatal(err)
	}
	found, err := place(dir, rows, plan)
	if err != nil || found.SHA256 != made.SHA256 || found.Rows != made.Rows {
		t.Errorf("the bundle of %d rows is not found again: %v", made.Rows, err)
	}
}

// File names appear in the ledger and in listings, so they must not contain a secret of a session
// id.
func TestFileNamesHideSecrets(t *testing.T) {
	for _, name := range []string{seal.File("a", "secret=hunter2", 0), seal.FileApart("a", "secret=hunter2", 1, 0)} {
		if strings.Contains(name, "hunter2") || strings.Contains(name, "secret_h") {
			t.Error(name)
		}
	}
	if got, want := filepath.Base(seal.File("a", "session-1", 0)), "aivs_proof_session-_0.tar.gz"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
