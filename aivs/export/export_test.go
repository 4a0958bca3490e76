package export_test

import (
	"archive/tar"
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/aivstest"
	"github.com/plumbline/plumbline/aivs/export"
	"github.com/plumbline/plumbline/aivs/keyring"
)

func keyOf(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

func hexOf(key ed25519.PrivateKey) string {
	return hex.EncodeToString(key.Public().(ed25519.PublicKey))
}

const day = 24 * 60 * 60

// at returns the time of a day of the tests' month.
func at(days int) time.Time { return time.Unix(1772323200+int64(days)*day, 0).UTC() } // 2026-03-01

// part seals one part of a session, with one decision on that day.
func part(t testing.TB, session string, number, on int, last bool, previous string, signer ed25519.PrivateKey) []byte {
	t.Helper()
	return partWith(t, session, number, on, last, previous, signer, `{"verified":true,"recommended_action":"proceed","traces":{"total":1,"violations":{},"findings":{}},"finding_counts":{}}`+"\n")
}

// partWith is part with this session.json.
func partWith(t testing.TB, session string, number, on int, last bool, previous string, signer ed25519.PrivateKey, verdict string) []byte {
	t.Helper()
	const trace = `{"note":"x"}`
	sum := sha256.Sum256([]byte(trace))
	bundle, err := aivs.Build(&aivs.Input{
		SessionID: session, AgentID: "did:web:shop.example", ExportedAt: at(on).Unix() + 3600, Part: int64(number), LastPart: last,
		TraceCount: 1, PreviousBundleSHA256: previous, Generator: "test",
		Rows: aivs.SliceRows([]aivs.Row{{ActionType: "aap.execute", ToolName: "aap.search", OutputsJSON: "{}",
			InputsJSON: fmt.Sprintf(`{"trace_id":"t","trace_sha256":"%x"}`, sum), Timestamp: float64(at(on).Unix())}}),
		Members: []aivs.Member{{Name: aivs.TracesMember, Data: []byte(trace + "\n")}, {Name: aivs.SessionMember,
			Data: []byte(verdict)}},
	}, signer)
	if err != nil {
		t.Fatal(err)
	}
	return bundle.Bytes
}

func digest(bundle []byte) string {
	sum := sha256.Sum256(bundle)
	return hex.EncodeToString(sum[:])
}

// month is an archive of three sessions: one in two parts, by two keys of a key list.
func month(t testing.TB, keys ...ed25519.PublicKey) *export.Archive {
	t.Helper()
	old, next := keyOf(1), keyOf(2)
	ring, err := new(keyring.Ring).Add(keyring.Addition{Purpose: keyring.Session, Key: old, IssuedAt: at(0)})
	if err == nil {
		ring, err = ring.Add(keyring.Addition{Purpose: keyring.Session, Key: next, Previous: old, IssuedAt: at(5), NotBefore: at(5), Retire: at(6)})
	}
	if err != nil {
		t.Fatal(err)
	}
	first := part(t, "a", 1, 2, false, "", old)
	a := &export.Archive{
		Range: export.Range{AgentID: "did:web:shop.example", From: at(3), To: at(30)}, KeyList: ring.Text(), MissingKnown: true,
		Bundles: []export.Bundle{
			bundle(t, "agent/a2.tar.gz", part(t, "a", 2, 8, true, digest(first), next), keys...),
			bundle(t, "agent/b.tar.gz", part(t, "b", 1, 4, true, "", old), keys...),
			bundle(t, "agent/a1.tar.gz", first, keys...),
			bundle(t, "agent/with a ünusual name.tar.gz", part(t, "c", 1, 9, true, "", next), keys...),
		},
	}
	a.Bundles[2].InRange = false
	return a
}

func bundle(t testing.TB, name string, content []byte, keys ...ed25519.PublicKey) export.Bundle {
	t.Helper()
	var times export.Times
	report, err := aivs.Verify(bytes.NewReader(content), aivs.Options{Keys: keys, Row: times.Row})
	if err != nil {
		t.Fatal(err)
	}
	return export.Bundle{Name: name, Report: report, InRange: true, Size: int64(len(content)), Times: times,
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }}
}

func written(t testing.TB, a *export.Archive) ([]byte, *export.Index) {
	t.Helper()
	var out bytes.Buffer
	index, err := a.Write(&out)
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), index
}

// unpacked unpacks an archive into an empty directory, with edits of its files; an edit that
// returns nil removes the file.
func unpacked(t testing.TB, archive []byte, edits map[string]func([]byte) []byte) string {
	t.Helper()
	place := t.TempDir()
	in := tar.NewReader(bytes.NewReader(archive))
	edited := 0
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(place, filepath.FromSlash(h.Name))
		if edit := edits[strings.TrimPrefix(h.Name, "plumbline-export/")]; edit != nil {
			edited++
			if data = edit(data); data == nil {
				continue
			}
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if edited != len(edits) {
		t.Fatalf("%d of %d files are in the archive", edited, len(edits))
	}
	return filepath.Join(place, "plumbline-export")
}

// verifyAll runs verify_all.py as the README says, with Python alone.
func verifyAll(t testing.TB, directory string, arguments ...string) (passed bool, output string) {
	t.Helper()
	command := exec.Command("python3", append([]string{"-I", "verify_all.py"}, arguments...)...)
	command.Dir, command.Env = directory, []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "TMPDIR=" + t.TempDir()}
	out, err := command.CombinedOutput()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited || strings.Contains(string(out), "Traceback") {
		t.Fatalf("%v\n%s", err, out)
	}
	return err == nil, string(out)
}

// An archive is verified in an empty directory with Python alone: without a key, with an earlier
// key that leads to the others, and not with a stranger's.
func TestPythonAloneVerifiesAnExport(t *testing.T) {
	archive, index := written(t, month(t))
	if again, _ := written(t, month(t)); !bytes.Equal(archive, again) {
		t.Error("the same bundles gave two archives")
	}
	if s := index.Summary; !index.Good() || s.Bundles != 4 || s.Intact != 4 || s.Sessions != 3 || s.Traces != 4 || s.Verdicts["proceed"] != 4 {
		t.Errorf("%+v", index)
	}
	directory := unpacked(t, archive, nil)
	for name, arguments := range map[string][]string{"no key": nil, "the first key": {"--key", hexOf(keyOf(1))}, "the second key": {"--key", hexOf(keyOf(2))}} {
		passed, output := verifyAll(t, directory, arguments...)
		if !passed || !strings.Contains(output, "4 bundles, 4 intact, 0 not, 0 faults between bundles and index, 0 missing") ||
			!strings.Contains(output, "INTACT  bundles/agent/a1.tar.gz  Verdict recorded inside: PROCEED (0 violations, 0 findings).") ||
			strings.Contains(output, "NOT CHECKED: who signed") != (arguments == nil) || !strings.Contains(output, "Verified does NOT equal safe.") {
			t.Errorf("%s: %s", name, output)
		}
	}
	if passed, output := verifyAll(t, directory, "--key", hexOf(keyOf(3))); passed || strings.Count(output, "which is not a key given with --key") != 4 {
		t.Errorf("a stranger's key: %s", output)
	}
	text, err := os.ReadFile(filepath.Join(directory, "index.txt"))
	for _, want := range []string{"agent \"did:web:shop.example\", from 2026-03-04 00:00:00 UTC (included), to 2026-03-31 00:00:00 UTC (not included)\n", "4 bundles of 3 sessions: 4 intact, 0 not intact. 4 decisions in the intact ones, with those of their sessions that are outside the range.\n1 bundle outside the range",
		"every record of the range that is stored there is in a bundle", "outside the range: another part of its session is in it", "decisions from 2026-03-05 00:00:00 UTC to 2026-03-05 00:00:00 UTC, by the agent's clock\n  sealed 2026-03-05 01:00:00 UTC, by the operator's clock\n",
		"whose key that is was not checked", "Every session that is here is complete", "session a, part 2 (last: true), recorded verdict PROCEED"} {
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%v: index.txt does not say %q:\n%s", err, want, text)
		}
	}
	if left, err := filepath.Glob(filepath.Join(directory, "__pycache__")); err != nil || len(left) > 0 {
		t.Errorf("verify_all.py left %v, %v", left, err)
	}
}

// What somebody changes, removes or adds in an export is named.
func TestDamagedExports(t *testing.T) {
	archive, _ := written(t, month(t))
	flip := func(data []byte) []byte {
		data = bytes.Clone(data)
		data[len(data)/2] ^= 1
		return data
	}
	swap := func(old, with string) func([]byte) []byte {
		return func(data []byte) []byte { return bytes.Replace(data, []byte(old), []byte(with), 1) }
	}
	gone := func([]byte) []byte { return nil }
	edit := func(name string, f func([]byte) []byte) map[string]func([]byte) []byte {
		return map[string]func([]byte) []byte{name: f}
	}
	for name, c := range map[string]struct {
		edits map[string]func([]byte) []byte
		want  []string
	}{
		"one byte of a bundle":     {edit("bundles/agent/b.tar.gz", flip), []string{"NOT INTACT  bundles/agent/b.tar.gz", "FAIL  bundles/agent/b.tar.gz: its SHA-256 is not the one in the index"}},
		"a bundle is gone":         {edit("bundles/agent/b.tar.gz", gone), []string{"FAIL  bundles/agent/b.tar.gz: the index lists it, and it is not here"}},
		"the first part is gone":   {edit("bundles/agent/a1.tar.gz", gone), []string{`session "a" of agent "did:web:shop.example": part 1 is missing`}},
		"gone from index, too":     {map[string]func([]byte) []byte{"bundles/agent/a1.tar.gz": gone, "index.json": swap("a1.tar.gz", "a2.tar.gz")}, []string{"part 1 is missing"}},
		"not in the index":         {edit("index.json", swap("agent/b.tar.gz", "agent/x.tar.gz")), []string{"FAIL  bundles/agent/b.tar.gz: it is here, and the index does not list it"}},
		"another part":             {edit("index.json", swap(`"part": 2`, `"part": 3`)), []string{"bundles/agent/a2.tar.gz: the index says something else about it than the bundle (part)"}},
		"an older key in the list": {edit("keys.jsonl", swap(hexOf(keyOf(1)), hexOf(keyOf(3)))), []string{"FAIL  keys.jsonl: line 1 is not a line of a key list"}},
		"the list is shorter":      {edit("keys.jsonl", func(b []byte) []byte { return b[bytes.IndexByte(b, '\n')+1:] }), []string{"FAIL  keys.jsonl: line 1 is not a line of a key list"}},
		"a stranger's key in the list": {edit("keys.jsonl", func(b []byte) []byte {
			id := func(key ed25519.PrivateKey) string { return aivs.KeyID(key.Public().(ed25519.PublicKey)) }
			lines := bytes.SplitAfter(b, []byte("\n"))
			lines[1] = bytes.ReplaceAll(bytes.ReplaceAll(lines[1], []byte(hexOf(keyOf(2))), []byte(hexOf(keyOf(3)))), []byte(id(keyOf(2))), []byte(id(keyOf(3))))
			return bytes.Join(lines, nil)
		}), []string{"FAIL  keys.jsonl: line 2 is not a line of a key list: a signature is wrong"}},
		"no index":                 {edit("index.json", gone), []string{"FAIL  "}},
		"an index that is no JSON": {edit("index.json", swap("{", "[")), []string{"FAIL  index.json: not strict JSON"}},
	} {
		passed, output := verifyAll(t, unpacked(t, archive, c.edits), "--key", hexOf(keyOf(1)))
		for _, want := range c.want {
			if passed || !strings.Contains(output, want) {
				t.Errorf("%s: passed %v, want %q:\n%s", name, passed, want, output)
			}
		}
	}
}

// A key that has ended does not sign for later bundles, though it is in the list.
func TestKeysOfAnExportEnd(t *testing.T) {
	a := month(t)
	a.Bundles = []export.Bundle{bundle(t, "late.tar.gz", part(t, "late", 1, 20, true, "", keyOf(1)))}
	archive, _ := written(t, a)
	if passed, output := verifyAll(t, unpacked(t, archive, nil), "--key", hexOf(keyOf(2))); passed || !strings.Contains(output, "FAIL  public_key.pem: it was no longer valid: session key ") {
		t.Error(output)
	}
}

// Bundles that are not intact, and what is missing from the range, are named in the index and make
// it not good.
func TestIndexNamesWhatIsWrongOrMissing(t *testing.T) {
	a := month(t)
	damaged := part(t, "d", 1, 10, true, "", keyOf(2))
	damaged[len(damaged)/2] ^= 1
	a.Bundles = append(a.Bundles, bundle(t, "agent/d.tar.gz", damaged))
	a.Missing = []export.Missing{
		{AgentID: "did:web:shop.example", SessionID: "open\x1b", Traces: 3, First: at(11), Last: at(12), Why: "not sealed yet"},
		{AgentID: "did:web:shop.example", SessionID: "held", Traces: 1, First: at(9), Last: at(9), Why: "held and not sealed: rows and receipts differ"},
	}
	archive, index := written(t, a)
	if index.Good() || index.Summary.NotIntact != 1 || index.Summary.Missing != 2 || index.Missing[0].SessionID != "held" {
		t.Errorf("%+v", index)
	}
	directory := unpacked(t, archive, nil)
	passed, output := verifyAll(t, directory)
	for _, want := range []string{"NOT INTACT  bundles/agent/d.tar.gz", `MISSING  agent "did:web:shop.example", session "held": held and not sealed: rows and receipts differ`, `session "open\u001b": not sealed yet`, "5 bundles, 4 intact, 1 not"} {
		if passed || !strings.Contains(output, want) {
			t.Errorf("want %q:\n%s", want, output)
		}
	}
	text, err := os.ReadFile(filepath.Join(directory, "index.txt"))
	for _, want := range []string{`session "open\x1b": 3 records in no bundle, from 2026-03-12 00:00:00 UTC to 2026-03-13 00:00:00 UTC: not sealed yet`, "NOT INTACT  bundles/agent/d.tar.gz\n", "  FAIL  "} {
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("index.txt does not say %q:\n%s", want, text)
		}
	}
	a = month(t)
	a.Missing = []export.Missing{{AgentID: "did:web:shop.example", SessionID: "held", Why: "held and not sealed: they differ"}}
	archive, index = written(t, a)
	if passed, output := verifyAll(t, unpacked(t, archive, nil)); passed || index.Good() || !strings.Contains(output, "4 bundles, 4 intact, 0 not, 0 faults between bundles and index, 1 missing") {
		t.Errorf("a missing session alone: %v\n%s", index.Good(), output)
	}
	a = month(t)
	a.MissingKnown = false
	archive, _ = written(t, a)
	if _, output := verifyAll(t, unpacked(t, archive, nil)); !strings.Contains(output, "NOT CHECKED: sessions that are held or not sealed yet.") {
		t.Error(output)
	}
}

// A bundle whose file changes while it is exported is not exported.
func TestBundleThatChangesMeanwhile(t *testing.T) {
	a := month(t)
	other := part(t, "b", 1, 4, true, "", keyOf(1))
	other[len(other)/2] ^= 1
	for name, other := range map[string][]byte{"other bytes": other, "shorter": other[:100]} {
		a.Bundles[1].Open = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(other)), nil }
		a.Bundles = a.Bundles[1:2]
		if _, err := a.Write(io.Discard); err == nil || !strings.Contains(err.Error(), "b.tar.gz was changed while it was exported") {
			t.Errorf("%s: error %v", name, err)
		}
		a = month(t)
	}
}

// A bundle that would leave its directory is refused before anything of it is written.
func TestHostileBundleInAnExport(t *testing.T) {
	archive, _ := written(t, month(t))
	var hostile bytes.Buffer
	w := tar.NewWriter(&hostile)
	for _, h := range []tar.Header{{Name: "session_proof/../../../escaped", Typeflag: tar.TypeReg, Mode: 0o644}, {Name: "session_proof/x", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}} {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	directory := unpacked(t, archive, nil)
	if err := os.WriteFile(filepath.Join(directory, "bundles", "evil.tar.gz"), aivstest.Gzip(t, hostile.Bytes()), 0o600); err != nil {
		t.Fatal(err)
	}
	passed, output := verifyAll(t, directory)
	if passed || !strings.Contains(output, "NOT INTACT  bundles/evil.tar.gz") || !strings.Contains(output, "FAIL  archive: not a plain file") {
		t.Error(output)
	}
	var index map[string]any
	text, err := os.ReadFile(filepath.Join(directory, "index.json"))
	if err = errors.Join(err, json.Unmarshal(text, &index)); err != nil || !slices.Contains(slices.Collect(maps.Keys(index)), "missing_known") {
		t.Error(err)
	}
}

// Rows that are called like those of a frame are decisions, unless they are the first and the last one.
func TestTimesOfRowsThatOnlySoundLikeAFrame(t *testing.T) {
	var times export.Times
	for i, r := range []aivs.Row{{ActionType: aivs.ActionOpen, ToolName: "plumbline.open.1"}, {ActionType: aivs.ActionOpen, ToolName: "plumbline.open.wallet"},
		{ActionType: aivs.ActionToolCall, ToolName: "a.b"}, {ActionType: aivs.ActionSeal, ToolName: "aivs.content.sha256.00"}} {
		r.ID, r.Timestamp = int64(i+1), float64(i+1)
		times.Row(&r)
	}
	if times.First.Unix() != 2 || times.Last.Unix() != 3 {
		t.Errorf("%+v", times)
	}
}
