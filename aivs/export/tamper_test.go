package export_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/aivstest"
	"github.com/plumbline/plumbline/aivs/export"
)

// edited returns an edit of index.json.
func edited(t testing.TB, change func(index map[string]any)) func([]byte) []byte {
	return func(data []byte) []byte {
		var index map[string]any
		if err := json.Unmarshal(data, &index); err != nil {
			t.Fatal(err)
		}
		change(index)
		data, err := json.Marshal(index)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
}

// entry returns an entry of index.json.
func entry(index map[string]any, i int) map[string]any {
	return index["bundles"].([]any)[i].(map[string]any)
}

// furnished is one session of the month, with a time stamp and a page about each bundle.
func furnished(t testing.TB) *export.Archive {
	t.Helper()
	a := month(t)
	a.Bundles = []export.Bundle{a.Bundles[0], a.Bundles[2]}
	a.Bundles[0].SideFiles = []export.SideFile{{Suffix: ".tsr", Data: []byte("stamp")}}
	for i := range a.Bundles {
		a.Bundles[i].Page = func() ([]byte, error) { return fmt.Appendf(nil, "page %d", i), nil }
	}
	return a
}

// What the index says of a bundle must be what the bundle says, and every other file must be the one
// that was exported.
func TestForgedIndexes(t *testing.T) {
	archive, _ := written(t, furnished(t))
	type edits = map[string]func([]byte) []byte
	index := func(change func(map[string]any)) edits { return edits{"index.json": edited(t, change)} }
	set := func(i int, name string, value any) edits {
		return index(func(x map[string]any) { entry(x, i)[name] = value })
	}
	for name, c := range map[string]struct {
		edits edits
		want  string
	}{
		"another verdict": {index(func(x map[string]any) {
			entry(x, 0)["verdict"].(map[string]any)["violations"] = 1
		}), "FAIL  bundles/agent/a1.tar.gz: the index says something else about it than the bundle (verdict)"},
		"no verdict":            {set(1, "verdict", nil), "a2.tar.gz: the index says something else about it than the bundle (verdict)"},
		"another agent":         {set(1, "agent_id", "did:web:other.example"), "than the bundle (agent_id)"},
		"another time":          {set(1, "last", "2026-03-09T00:00:01Z"), "than the bundle (last)"},
		"another sealing":       {set(1, "sealed_at", "2026-03-09T00:00:01Z"), "than the bundle (sealed_at)"},
		"another signer":        {set(1, "public_key", hexOf(keyOf(3))), "than the bundle (public_key)"},
		"more decisions":        {set(1, "traces", 2), "than the bundle (traces)"},
		"a text for a number":   {set(1, "rows", "3"), "than the bundle (rows)"},
		"in the range":          {set(0, "in_range", true), "a1.tar.gz: the index says something else about it than the bundle (in_range)"},
		"called not signed":     {set(1, "conclusion", "INTACT, NOT SIGNED"), "than the bundle (conclusion)"},
		"called not intact":     {set(1, "intact", false), "FAIL  index: bundles/agent/a2.tar.gz: archive: not intact"},
		"another summary":       {index(func(x map[string]any) { x["summary"].(map[string]any)["bundles"] = 5 }), "FAIL  index.json: its summary does not agree with what it lists"},
		"of another agent":      {index(func(x map[string]any) { x["range"].(map[string]any)["agent_id"] = "did:web:other.example" }), `it is of agent "did:web:shop.example", and this export is of agent "did:web:other.example"`},
		"listed twice":          {index(func(x map[string]any) { x["bundles"] = append(x["bundles"].([]any), entry(x, 1)) }), "a2.tar.gz: the index lists it twice"},
		"a fault that it hides": {edits{"bundles/agent/a1.tar.gz": func([]byte) []byte { return nil }, "index.json": edited(t, func(x map[string]any) { x["bundles"] = x["bundles"].([]any)[1:] })}, `part 1 is missing`},
		"another text":          {edits{"index.txt": bytes.ToUpper}, "FAIL  index.txt: its SHA-256 is not the one in the index"},
		"another page":          {edits{"reports/agent/a2.tar.gz.html": func([]byte) []byte { return []byte("page 1") }}, "FAIL  reports/agent/a2.tar.gz.html: its SHA-256 is not the one in the index"},
		"another README":        {edits{"README.txt": bytes.ToUpper}, "FAIL  README.txt: its SHA-256"},
		"no time stamp":         {edits{"bundles/agent/a2.tar.gz.tsr": func([]byte) []byte { return nil }}, "FAIL  bundles/agent/a2.tar.gz.tsr: the index lists it, and it is not here"},
		"an empty index":        {edits{"index.json": func([]byte) []byte { return []byte("{}") }}, "FAIL  index.json: not an index of an export, or one of a newer version"},
		"a list of numbers":     {index(func(x map[string]any) { x["bundles"] = []any{1} }), "FAIL  index.json: not an index of an export: members are missing"},
		"no reason":             {index(func(x map[string]any) { x["missing"] = []any{map[string]any{"agent_id": "a"}} }), "FAIL  index.json: not an index of an export: members are missing"},
		"a key list of numbers": {edits{"keys.jsonl": func([]byte) []byte {
			return []byte(`{"type":"plumbline-keys/1","version":1,"keys":[{"public_key":1,"purpose":"session","key_id":"x"}],"signatures":[]}`)
		}}, "FAIL  keys.jsonl: line 1 is not a line of a key list"},
	} {
		passed, output := verifyAll(t, unpacked(t, archive, c.edits), "--key", hexOf(keyOf(1)))
		if passed || !strings.Contains(output, c.want) {
			t.Errorf("%s: passed %v, want %q:\n%s", name, passed, c.want, output)
		}
	}
	passed, output := verifyAll(t, unpacked(t, archive, nil), "--key", hexOf(keyOf(1)))
	for _, want := range []string{"NOT CHECKED: what the pages say (reports/: 2)", "NOT CHECKED: time stamps and proofs of inclusion (.tsr, .tlog-proof: 1)",
		"NOT CHECKED: whether the index names everything. It is not signed", "2 bundles, 2 intact, 0 not, 0 faults between bundles and index, 0 missing"} {
		if !passed || !strings.Contains(output, want) {
			t.Errorf("whole: passed %v, want %q:\n%s", passed, want, output)
		}
	}
}

// A fault that only the exporter could see is a fault for verify_all.py, too.
func TestFaultThatTheExporterSaw(t *testing.T) {
	a := month(t)
	a.Bundles[1].Report.Fault("archive", "its SHA-256 is not the one that was recorded")
	archive, _ := written(t, a)
	passed, output := verifyAll(t, unpacked(t, archive, nil))
	if passed || !strings.Contains(output, "FAIL  index: bundles/agent/b.tar.gz: archive: its SHA-256 is not the one that was recorded\n") {
		t.Error(output)
	}
}

// Files that are no part of an export are named, and nothing of them is run. Python would prefer
// compiled code beside verify.py to verify.py itself.
func TestFilesThatAreNoPartOfAnExport(t *testing.T) {
	archive, _ := written(t, month(t))
	directory := unpacked(t, archive, nil)
	const hostile = `
import py_compile, importlib.util, os, sys
open("x.py", "w").write("import os\nprint('the hostile code ran', flush=True)\nos._exit(0)\n")
os.mkdir("__pycache__")
py_compile.compile("x.py", cfile=importlib.util.cache_from_source(os.path.abspath("verify.py")), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
os.symlink("index.txt", "link.txt")
`
	command := exec.Command("python3", "-I", "-c", hostile)
	command.Dir = directory
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if err := os.WriteFile(filepath.Join(directory, "bundles", "Opinion of counsel.html"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	passed, output := verifyAll(t, directory)
	if passed || strings.Contains(output, "the hostile code ran") {
		t.Errorf("passed %v:\n%s", passed, output)
	}
	for _, want := range []string{"FAIL  link.txt: not a plain file", "EXTRA  bundles/Opinion of counsel.html: it is here, and is no part of this export", "EXTRA  __pycache__/verify", "EXTRA  x.py: "} {
		if !strings.Contains(output, want) {
			t.Errorf("want %q:\n%s", want, output)
		}
	}
	if err := os.Remove(filepath.Join(directory, "link.txt")); err != nil {
		t.Fatal(err)
	}
	if passed, output := verifyAll(t, directory); !passed {
		t.Error("a file that is no part of it makes an export bad:\n" + output)
	}
}

// A verify.py that finds nothing wrong is not run.
func TestReplacedVerifier(t *testing.T) {
	archive, _ := written(t, furnished(t))
	replaced := map[string]func([]byte) []byte{"verify.py": func(script []byte) []byte {
		return append(script, "\ndef verify(directory, pinned):\n    print('INTACT: of course\\nVerdict recorded inside: none.')\nprint('the hostile code ran', flush=True)\n"...)
	}}
	passed, output := verifyAll(t, unpacked(t, archive, replaced))
	if passed || output != "FAIL  verify.py: not the one that this verify_all.py was made with. Nothing was verified.\n" {
		t.Errorf("passed %v:\n%s", passed, output)
	}
}

// With a signed index nobody but the signer can leave out a bundle together with its entry.
func TestSignedIndex(t *testing.T) {
	a := month(t)
	a.Key = keyOf(2)
	archive, _ := written(t, a)
	directory := unpacked(t, archive, nil)
	for name, arguments := range map[string][]string{"no key": nil, "the key": {"--key", hexOf(keyOf(2))}, "a key that leads to it": {"--key", hexOf(keyOf(1))}} {
		if passed, output := verifyAll(t, directory, arguments...); !passed || !strings.Contains(output, "PASS  index: it is as it was when the holder of the key "+hexOf(keyOf(2))+" signed it") {
			t.Errorf("%s: %s", name, output)
		}
	}
	gone := func([]byte) []byte { return nil }
	dropped := map[string]func([]byte) []byte{"bundles/agent/b.tar.gz": gone, "index.json": edited(t, func(x map[string]any) {
		bundles, summary := x["bundles"].([]any), x["summary"].(map[string]any)
		x["bundles"] = append(bundles[:2:2], bundles[3:]...)
		summary["bundles"], summary["intact"], summary["sessions"], summary["traces"] = 3, 3, 2, 3
		summary["verdicts"].(map[string]any)["proceed"] = 3
	})}
	if passed, output := verifyAll(t, unpacked(t, archive, dropped), "--key", hexOf(keyOf(1))); passed || !strings.Contains(output, "FAIL  index.sig: the index was changed after it was signed") {
		t.Error(output)
	}
	dropped["index.sig"] = gone
	if passed, output := verifyAll(t, unpacked(t, archive, dropped), "--key", hexOf(keyOf(1))); !passed || !strings.Contains(output, "NOT CHECKED: whether the index names everything. It is not signed") {
		t.Errorf("without index.sig nobody can know, and verify_all.py must say so:\n%s", output)
	}
	a.Key = keyOf(3)
	archive, _ = written(t, a)
	if passed, output := verifyAll(t, unpacked(t, archive, nil), "--key", hexOf(keyOf(1))); passed || !strings.Contains(output, "FAIL  index.sig: signed by "+hexOf(keyOf(3))) {
		t.Error(output)
	}
	if passed, output := verifyAll(t, unpacked(t, archive, map[string]func([]byte) []byte{"index.sig": func([]byte) []byte { return []byte(`{"public_key":1}`) }})); passed || !strings.Contains(output, "FAIL  index.sig: ") {
		t.Error(output)
	}
}

// Whatever a bundle in an export is, the others are verified, and it is named.
func TestHostileArchivesInAnExport(t *testing.T) {
	archive, _ := written(t, month(t))
	directory := unpacked(t, archive, nil)
	whole := part(t, "x", 1, 4, true, "", keyOf(1))
	place := func(name string, content []byte) {
		if err := os.WriteFile(filepath.Join(directory, "bundles", name+".tar.gz"), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 24 { // a byte changed, and the file cut, in many places
		flipped := bytes.Clone(whole)
		flipped[len(whole)*i/24] ^= 0x55
		place(fmt.Sprintf("flipped%02d", i), flipped)
		place(fmt.Sprintf("cut%02d", i), whole[:len(whole)*i/24])
	}
	content := aivstest.Gunzip(t, whole)
	place("hidden", aivstest.Gzip(t, append(bytes.Clone(content), bytes.Repeat([]byte("hidden"), 100)...)))
	badHeader := bytes.Clone(content)
	copy(badHeader[len(badHeader)-1024:], bytes.Repeat([]byte("x"), 512)) // where the first block of zeros is
	place("header", aivstest.Gzip(t, badHeader))
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := range 10_001 {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: fmt.Sprint("session_proof/", i, "/"), Mode: 0o755}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	place("directories", aivstest.Gzip(t, b.Bytes()))
	long := make([]byte, 512) // a header that says that another one of 6 GiB follows
	copy(long, "x")
	copy(long[124:], "60000000000")
	copy(long[156:], "x")
	copy(long[257:], "ustar\x0000")
	copy(long[148:], "        ")
	sum := 0
	for _, c := range long {
		sum += int(c)
	}
	copy(long[148:], fmt.Sprintf("%06o\x00 ", sum))
	place("long", aivstest.Gzip(t, append(long, make([]byte, 4<<20)...)))

	deceiving := func(kind byte, size int) []byte { // readers disagree what the first entry is
		block := bytes.Clone(long)
		clear(block[:100])
		copy(block, "session_proof/d/")
		copy(block[124:], fmt.Sprintf("%011o", size))
		block[156] = kind
		copy(block[148:], "        ")
		sum := 0
		for _, c := range block {
			sum += int(c)
		}
		copy(block[148:], fmt.Sprintf("%06o\x00 ", sum))
		return aivstest.Gzip(t, append(block, content...))
	}
	place("folder", deceiving('5', 512))
	place("named", deceiving('0', 0))
	place("contiguous", deceiving('7', 0))
	var global bytes.Buffer
	w = tar.NewWriter(&global)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "x"}}); err != nil || w.Flush() != nil {
		t.Fatal(err)
	}
	place("global", aivstest.Gzip(t, append(global.Bytes(), content...)))

	passed, output := verifyAll(t, directory)
	if passed || strings.Count(output, "\nNOT INTACT  bundles/") < 50 || strings.Contains(output, "NOT JUDGED") || strings.Count(output, "\nINTACT  bundles/agent/") < 3 {
		t.Errorf("passed %v:\n%s", passed, output)
	}
	for name, want := range map[string]string{"hidden": "archive: after its last entry: data that is not padding", "header": "archive: after its last entry: data that is not padding",
		"directories": "archive: more than 10000 files", "long": "archive: cannot be unpacked",
		"folder": "archive: not a plain file", "named": "archive: not a plain file", "contiguous": "archive: not a plain file", "global": "archive: not a plain file"} {
		if !strings.Contains(output, "NOT INTACT  bundles/"+name+".tar.gz  Verdict recorded inside: not read, since the bundle is not intact.\n      FAIL  "+want) {
			t.Errorf("%s: want %q:\n%s", name, want, output)
		}
	}
}

// A computer that cannot hold a bundle does not accuse it.
func TestFullDiskAccusesNoBundle(t *testing.T) {
	archive, _ := written(t, month(t))
	command := exec.Command("sh", "-c", "ulimit -f 1; exec python3 -I verify_all.py")
	command.Dir = unpacked(t, archive, nil)
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + t.TempDir()}
	out, err := command.CombinedOutput()
	if _, exited := errors.AsType[*exec.ExitError](err); !exited || strings.Contains(string(out), "NOT INTACT") || strings.Count(string(out), "NOT JUDGED  bundles/") != 4 ||
		!strings.Contains(string(out), "FAIL  cannot be unpacked on this computer: File too large") {
		t.Errorf("%v %s", err, out)
	}
}

// The index and verify_all.py say the same of the links between bundles, word for word.
func TestIndexAndPythonSayTheSameOfLinks(t *testing.T) {
	key := keyOf(1)
	first := part(t, "a", 1, 4, false, "", key)
	closed := part(t, "é\x1b\"", 1, 4, true, "", key)
	again := aivstest.Gzip(t, aivstest.Gunzip(t, closed))
	copy(again, closed[:10]) // with the header that Plumbline writes
	if bytes.Equal(again, closed) {
		t.Fatal("the archive is compressed in one way only")
	}
	a := &export.Archive{Range: export.Range{AgentID: "did:web:shop.example"}, Bundles: []export.Bundle{
		bundle(t, "a1.tar.gz", first), bundle(t, "a2.tar.gz", part(t, "a", 2, 3, false, digest(first), key)), bundle(t, "a4.tar.gz", part(t, "a", 4, 5, false, digest(first), key)),
		bundle(t, "b1.tar.gz", closed), bundle(t, "b1 again.tar.gz", closed), bundle(t, "b1 compressed again.tar.gz", again), bundle(t, "b2.tar.gz", part(t, "é\x1b\"", 2, 5, true, digest(closed), key)),
		bundle(t, "c1.tar.gz", part(t, "c", 1, 4, true, "", key)), bundle(t, "c1 other.tar.gz", part(t, "c", 1, 5, true, "", key)),
		bundle(t, "d2.tar.gz", part(t, "d", 1, 5, true, digest(first), key)),
	}}
	archive, index := written(t, a)
	if len(index.Between) != 4 || len(index.Open) != 1 || len(index.Late) != 1 {
		t.Fatalf("%+v %q %q", index.Between, index.Open, index.Late)
	}
	passed, output := verifyAll(t, unpacked(t, archive, nil))
	lines := strings.Split(output, "\n")
	count := func(prefix string) (n int) {
		for _, line := range lines {
			if strings.HasPrefix(line, prefix) {
				n++
			}
		}
		return n
	}
	if passed || count("FAIL  ") != 4 || count("OPEN  ") != 1 || count("LATE  ") != 1 {
		t.Errorf("passed %v:\n%s", passed, output)
	}
	for _, f := range index.Between {
		if !strings.Contains(output, "\nFAIL  "+f.Where+": "+f.Message+"\n") {
			t.Errorf("Python does not say %q:\n%s", f.Where+": "+f.Message, output)
		}
	}
	if !strings.Contains(output, "\nLATE  "+index.Late[0]+"\n") || !strings.Contains(output, "\nOPEN  "+index.Open[0]+": its last part") {
		t.Errorf("%q %q\n%s", index.Late, index.Open, output)
	}
	hidden := map[string]func([]byte) []byte{"index.json": edited(t, func(x map[string]any) { x["open"] = []any{} })}
	if _, output := verifyAll(t, unpacked(t, archive, hidden)); !strings.Contains(output, "its last part is not here, and the index does not say so") {
		t.Error(output)
	}
}

// An archive of nothing does not say that every session is complete.
func TestEmptyExport(t *testing.T) {
	archive, index := written(t, &export.Archive{Range: export.Range{AgentID: "did:web:shpo.example"}, MissingKnown: true})
	directory := unpacked(t, archive, nil)
	text, err := os.ReadFile(filepath.Join(directory, "index.txt"))
	if err != nil || strings.Contains(string(text), "is complete") || !strings.Contains(string(text), "the operator's database has no record of the range. Is the agent's id the right one?") {
		t.Errorf("%v\n%s", err, text)
	}
	if passed, output := verifyAll(t, directory); !passed || !index.Good() || !strings.Contains(output, "0 bundles, 0 intact") {
		t.Error(output)
	}
}

// The time of a row is the microsecond that it says, not the one before.
func TestTimesToTheMicrosecond(t *testing.T) {
	var times export.Times
	for _, at := range []float64{2180000000.000003, 2180000001.000001, -1, 1e300} {
		times.Row(&aivs.Row{ActionType: "aap.execute", Timestamp: at})
	}
	if first, last := times.First.Format("05.000000"), times.Last.Format("05.000000"); first != "20.000003" || last != "21.000001" {
		t.Errorf("from %s to %s", first, last)
	}
}

// Names that are not UTF-8, of bundles and of what is in them, keep nobody from exporting the others.
func TestNamesThatAreNotUTF8(t *testing.T) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "session_proof/\xff\xfe", Linkname: "x", Format: tar.FormatGNU}); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	a := &export.Archive{Bundles: []export.Bundle{
		bundle(t, "agent/\xffé.tar.gz", part(t, "a", 1, 4, true, "", keyOf(1))), bundle(t, "agent/%FFé.tar.gz", part(t, "b", 1, 4, true, "", keyOf(1))),
		bundle(t, "agent/linked.tar.gz", aivstest.Gzip(t, b.Bytes())),
	}}
	archive, index := written(t, a)
	names := map[string]string{}
	for _, e := range index.Bundles {
		names[e.SessionID] = e.File
	}
	if names["a"] != "bundles/agent/%FFé%.tar.gz" || names["b"] != "bundles/agent/%FFé.tar.gz" || index.Summary.NotIntact != 1 {
		t.Errorf("%q, %+v", names, index.Summary)
	}
	_, output := verifyAll(t, unpacked(t, archive, nil))
	if !strings.Contains(output, "3 bundles, 2 intact, 1 not") || strings.Contains(output, "does not list it") || strings.Contains(output, "is not here") {
		t.Error(output)
	}
}
