package main

import (
	"bytes"
	"compress/gzip"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/child"
	"github.com/plumbline/plumbline/engine"
	"github.com/plumbline/plumbline/engine/enginetest"
	"github.com/plumbline/plumbline/pipeline/durable"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
)

func TestMain(m *testing.M) {
	child.Dispatch()
	testscript.Main(suite{m}, map[string]func(){"plumbline": main})
}

// suite runs the tests of this binary, with an engine for the tests that need one.
type suite struct{ tests *testing.M }

func (s suite) Run() int {
	code := enginetest.Run(s.tests.Run)
	if err := os.RemoveAll(toolDir); err != nil {
		fmt.Fprintln(os.Stderr, "remove the tool of the scripts:", err)
		return max(code, 1)
	}
	return code
}

// The scripts in testdata specify the behavior of the command line. Each one that needs a machine starts its own.
func TestScripts(t *testing.T) {
	testscript.Run(t, scripts("script", setUp))
}

// These scripts share one machine, which requires tokens and checks messages, with receivers of what it sends: a start takes as much CPU time as
// sixty commands. Each script has agents and records of its own. The machine prints no secret of a record.
func TestScriptsOnOneMachine(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it starts a machine")
	}
	visitor := newVisitor(t)
	for _, name := range []string{"tokens.jsonl", "policies.yaml"} {
		text, err := os.ReadFile(filepath.Join("testdata", "machine", name))
		if err != nil {
			t.Fatal(err)
		}
		visitor.write(t, name, string(text))
	}
	t.Cleanup(func() { // after the one of up, so that everything is printed
		if said := visitor.out.String() + visitor.errs.String(); strings.Contains(said, "hunter2") {
			t.Errorf("plumbline up prints a secret:\n%s", said)
		}
	})
	receivers, flags := visitor.receive(t)
	t.Cleanup(func() { receivers.check(t) })
	visitor.up(t, "--token-file tokens.jsonl --message-policies-file policies.yaml "+flags, "…")
	testscript.Run(t, scripts("machine", func(env *testscript.Env) error {
		env.Setenv("DATA", filepath.Join(visitor.dir, "plumbline-data"))
		env.Setenv("TOKENS", filepath.Join(visitor.dir, "tokens.jsonl"))
		env.Setenv("POLICIES", filepath.Join(visitor.dir, "policies.yaml"))
		env.Setenv("ALERTS", receivers.alerts)
		return setUp(env)
	}))
}

// scripts returns how the scripts of a directory below testdata are run.
func scripts(dir string, setUp func(*testscript.Env) error) testscript.Params {
	return testscript.Params{
		Dir:                 filepath.Join("testdata", dir),
		Setup:               setUp,
		RequireExplicitExec: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"running": running, "await": await, "exits": exits, "terminate": terminate, "appendline": appendLine, "newest": newest, "queries": queries, "hides": hides, "nosecrets": noSecrets,
		},
	}
}

// setUp prepares a script's directory and environment.
func setUp(env *testscript.Env) error {
	if err := makeTool(); err != nil {
		return err
	}
	env.Setenv("PATH", toolDir+string(os.PathListSeparator)+env.Getenv("PATH"))
	cache, err := os.UserCacheDir() // scripts have no home; this avoids another download of the engine
	if err != nil {
		return err
	}
	env.Setenv("XDG_CACHE_HOME", cache)
	env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, "state")) // each script finds its own machines only
	if program, set := os.LookupEnv(engine.Variable); set {
		env.Setenv(engine.Variable, program)
	}
	return errors.Join(writeTraces(env.WorkDir), writeDrifting(env.WorkDir), makeBundles(env))
}

// makeBundles gives each script a valid bundle, the same bundle with one byte changed,
// an unsigned one, and two public keys.
func makeBundles(env *testscript.Env) error {
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	other := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{8}, ed25519.SeedSize))
	good, err := aivs.Build(session(), key)
	if err != nil {
		return err
	}
	unsigned, err := aivs.Build(session(), nil)
	if err != nil {
		return err
	}
	future := session()
	future.ExportedAt = 4_102_444_800
	late, err := aivs.Build(future, key)
	if err != nil {
		return err
	}
	judged := session()
	judged.Members = []aivs.Member{{Name: aivs.SessionMember, Data: []byte(`{"verified":false,"recommended_action":"deny","traces":{"total":1,` +
		`"violations":{"FORBIDDEN_ACTION":1},"findings":{"CATEGORY_EVASION":2}},"finding_counts":{"TRACE_GAP":1}}` + "\n")}}
	denied, err := aivs.Build(judged, key)
	if err != nil {
		return err
	}
	forged, err := recompressed(denied.Bytes, func(content []byte) []byte {
		return bytes.Replace(content, []byte(`_action":"deny"`), []byte(`_action":"pass"`), 1)
	})
	if err != nil {
		return err
	}
	changed := bytes.Clone(good.Bytes)
	changed[len(changed)/2] ^= 1
	files := map[string][]byte{
		"good.tar.gz": good.Bytes, "changed.tar.gz": changed, "unsigned.tar.gz": unsigned.Bytes, "late.bundle": late.Bytes,
		"denied.bundle": denied.Bytes, "forged.bundle": forged,
		"key": []byte(publicHex(key)), "otherkey": []byte(publicHex(other)), "signing.key": key.Seed(),
	}
	for name, data := range files {
		if err := durable.WriteFile(filepath.Join(env.WorkDir, name), data, 0o600); err != nil {
			return err
		}
	}
	env.Setenv("KEY", publicHex(key))
	env.Setenv("OTHERKEY", publicHex(other))
	return nil
}

// recompressed returns a bundle whose archive was changed.
func recompressed(bundle []byte, change func([]byte) []byte) ([]byte, error) {
	in, err := gzip.NewReader(bytes.NewReader(bundle))
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	out := gzip.NewWriter(&b)
	_, err = out.Write(change(content))
	err = errors.Join(err, out.Close())
	return b.Bytes(), err
}

func publicHex(key ed25519.PrivateKey) string {
	return hex.EncodeToString(key.Public().(ed25519.PublicKey))
}

func session() *aivs.Input {
	return &aivs.Input{
		SessionID: "s", AgentID: "a", ExportedAt: 1_790_000_000, Part: 1, LastPart: true, TraceCount: 1,
		Generator: "Plumbline", GeneratorURL: "https://example.org",
		Rows: aivs.SliceRows([]aivs.Row{{ActionType: "aap.execute", ToolName: "aap.search", Timestamp: 1_790_000_000.5,
			InputsJSON: `{"trace_id":"tr-1"}`, OutputsJSON: "{}"}}),
	}
}

// writeTraces writes a card, three traces and an invalid one, and a request
// to judge one of them.
func writeTraces(dir string) error {
	trace := func(id, action string) []byte {
		return append(pipelinetest.Trace(id, "a", "ac", "s", "2026-02-01T00:00:00Z", action).Data, '\n')
	}
	lines := bytes.Join([][]byte{trace("tr-1", "search"), trace("tr-2", "pay"), []byte("{broken\n"), trace("tr-3", "search")}, nil)
	if err := os.WriteFile(filepath.Join(dir, "traces.jsonl"), lines, 0o600); err != nil {
		return err
	}
	odd := func(id string) []byte { // of a card that is not registered
		return append(pipelinetest.Trace(id, "a", "gone", "z", "2026-02-01T00:00:00Z", "search").Data, '\n')
	}
	oddities := append(odd("zz-1"), bytes.Replace(odd("zz-2"), []byte("{"), []byte(`{"escalations":{},`), 1)...)
	if err := os.WriteFile(filepath.Join(dir, "odd.jsonl"), oddities, 0o600); err != nil {
		return err
	}
	card := pipelinetest.Card("ac", "a")
	request := fmt.Appendf(nil, `{"id":"1","op":"verify","trace":%s,"card":%s}`+"\n{broken\n", bytes.TrimSpace(trace("tr-2", "pay")), card)
	if err := os.WriteFile(filepath.Join(dir, "requests.jsonl"), request, 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "card.json"), card, 0o600)
}
