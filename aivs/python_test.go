package aivs

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/plumbline/plumbline/aivs/aivstest"
	"github.com/plumbline/plumbline/schema"
)

// unpack unpacks a bundle as a user would, and returns its session_proof directory.
func unpack(t testing.TB, bundle []byte) string {
	t.Helper()
	directory := t.TempDir()
	unpackInto(t, directory, aivstest.Gunzip(t, bundle))
	return filepath.Join(directory, "session_proof")
}

func unpackInto(t testing.TB, directory string, content []byte) {
	t.Helper()
	archive := tar.NewReader(bytes.NewReader(content))
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(directory, filepath.FromSlash(h.Name)), data)
	}
}

func writeFile(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// interpreter is a process that verifies a bundle for each request: in Python with verify.py, in
// JavaScript with the viewer's scripts. Starting a process takes longer than verifying most bundles.
type interpreter struct {
	requests  *json.Encoder
	responses *json.Decoder
}

var theInterpreter = sync.OnceValues(func() (*interpreter, error) {
	const loop = `
import contextlib, io, json, pathlib, sys, traceback
answers, compiled = sys.stdout, {}
for line in sys.stdin:
    request = json.loads(line)
    sys.argv, out, status = [request["script"]] + request["arguments"], io.TextIOWrapper(io.BytesIO(), "utf-8"), 0
    with contextlib.redirect_stdout(out):
        try:
            source = pathlib.Path(request["script"]).read_bytes()
            compiled[source] = compiled.get(source) or compile(source, "verify.py", "exec")
            exec(compiled[source], {"__name__": "__main__", "__file__": request["script"]})
        except SystemExit as e:
            status = e.code or 0
        except BaseException:
            status = 9
            print(traceback.format_exc())
    out.flush()
    json.dump({"status": status, "output": out.buffer.getvalue().decode("utf-8")}, answers)
    answers.write("\n")
    answers.flush()
`
	return startInterpreter(exec.Command("python3", "-I", "-c", loop))
})

// startInterpreter starts a process that reads requests and writes answers, a line of JSON each.
func startInterpreter(command *exec.Cmd) (*interpreter, error) {
	command.Stderr = os.Stderr
	in, err := command.StdinPipe() // closing it at the end of the tests ends the process
	if err != nil {
		return nil, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &interpreter{json.NewEncoder(in), json.NewDecoder(out)}, command.Start()
}

// runScript runs a verify.py with arguments. An exit code other than 0 and 1, as after an
// exception, ends the test.
func runScript(t testing.TB, script string, arguments ...string) (passed bool, output string) {
	t.Helper()
	python, err := theInterpreter()
	if err != nil {
		t.Fatalf("python3 is a prerequisite: %v", err)
	}
	request := struct {
		Script    string   `json:"script"`
		Arguments []string `json:"arguments"`
	}{script, append([]string{}, arguments...)}
	var response struct {
		Status int    `json:"status"`
		Output string `json:"output"`
	}
	if err := errors.Join(python.requests.Encode(request), python.responses.Decode(&response)); err != nil {
		t.Fatal(err)
	}
	if response.Status < 0 || response.Status > 1 {
		t.Fatalf("verify.py %q ended with %d:\n%s", arguments, response.Status, response.Output)
	}
	return response.Status == 0, response.Output
}

// python runs our verify.py over a directory and reports whether it exits 0.
func python(t testing.TB, directory string, arguments ...string) (passed bool, output string) {
	t.Helper()
	return runScript(t, verifierFile, append([]string{directory}, arguments...)...)
}

func TestPythonVerifiesInPlace(t *testing.T) {
	directory := unpack(t, build(t, sampleInput(4), testKey("k")).Bytes)
	command := exec.Command("python3", "-I", "verify.py")
	command.Dir = directory
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"PASS  hash chain: 6 rows", "PASS  signature", "PASS  traces: 4 lines", "SKIP  NOT CHECKED: who signed",
		"INTACT: this bundle is unchanged", "Not proven:", "Verified does NOT equal safe."} {
		if !strings.Contains(string(out), want) {
			t.Errorf("verify.py does not print %q:\n%s", want, out)
		}
	}
}

func TestPythonStatesTheLimitations(t *testing.T) {
	for _, sentence := range schema.Limitations() {
		if ascii := strings.ReplaceAll(sentence, "—", " - "); !bytes.Contains(verifier, []byte(ascii)) {
			t.Errorf("verify.py does not print %q", ascii)
		}
	}
}

func TestPythonNamesTheFault(t *testing.T) {
	cases := map[string]struct {
		spoil func(directory string) error
		want  string
	}{
		"row edited":         {swap(logFile, "t1", "t9"), "row 3: changed: its inputs_json is not that of its trace, line 2 of traces.jsonl"},
		"trace edited":       {swap(TracesMember, "t1", "t9"), "traces.jsonl: line 2 was changed: it is not the trace that row 3 records"},
		"card edited":        {swap("cards/c1.json", "c1", "c2"), "cards/c1.json: changed: not the file that was sealed"},
		"attestation gone":   {func(d string) error { return os.Remove(filepath.Join(d, attestationFile)) }, "attestation.dsse.json: missing"},
		"attestation edited": {swap(attestationFile, `"sig":"`, `"sig":"A`), "attestation.dsse.json: no signature in it"},
		"verdicts gone":      {func(d string) error { return os.Remove(filepath.Join(d, VerdictsMember)) }, "verdicts.jsonl: missing"},
		"stray file":         {func(d string) error { return os.WriteFile(filepath.Join(d, "x"), nil, 0o600) }, "x: not a file of this bundle"},
		"verifier edited":    {swap(verifierFile, "python3", "python2"), "verify.py: not a verify.py that"},
		"predecessor":        {swap(previousFile, "a", "b"), "previous_bundle_hash.txt: changed"},
		"manifest edited":    {swap(manifestFile, "Plumbline", "plumbline"), "manifest.json: changed"},
		"manifest spaced":    {swap(manifestFile, "{\n", "{ \n"), "manifest.json: changed"},
		"key file":           {swap(keyFile, "# Ed", "#  Ed"), "public_key.pem: not written as Plumbline writes it"},
		"stripped":           {swap(signatureName, "signature:", "# "), "session_sig.txt: there is no signature, and one is required"},
		"log gone":           {func(d string) error { return os.Remove(filepath.Join(d, logFile)) }, "audit_log.jsonl: missing"},
	}
	for name, c := range cases {
		directory := unpack(t, build(t, sampleInput(3), testKey("k")).Bytes)
		if err := c.spoil(directory); err != nil {
			t.Fatal(err)
		}
		passed, output := python(t, directory)
		if passed || !strings.Contains(output, "FAIL  "+c.want) {
			t.Errorf("%s: %s", name, output)
		}
		sayTheSame(t, directory, output, nil)
	}
}

// swap replaces every occurrence of old in a file.
func swap(file, old, replacement string) func(string) error {
	return func(directory string) error {
		path := filepath.Join(directory, filepath.FromSlash(file))
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		changed := bytes.ReplaceAll(data, []byte(old), []byte(replacement))
		if bytes.Equal(changed, data) {
			return fmt.Errorf("%s does not hold %q", file, old)
		}
		return os.WriteFile(path, changed, 0o600)
	}
}

var differential = flag.Int("differential", 120, "random bundles that Go and Python judge")

// Go and Python must agree on bundles with random contents and random damage.
func TestGoAndPythonAgree(t *testing.T) {
	root := t.TempDir()
	bundles := rapid.Custom(func(r *rapid.T) []byte { return randomBundle(t, r) })
	var verdicts []*Report
	for seed := range *differential {
		content := bundles.Example(seed)
		unpackInto(t, filepath.Join(root, fmt.Sprintf("%05d", seed)), content)
		verdicts = append(verdicts, judge(t, aivstest.Gzip(t, content), Options{}))
	}
	whole := 0
	for i, line := range judgeAll(t, root, len(verdicts)) {
		want := "1 "
		if verdicts[i].Intact {
			want = "0 "
			whole++
		}
		if !strings.HasPrefix(line, want) {
			t.Errorf("bundle of seed %d: Python %s, Go %+v", i, line, verdicts[i])
		}
	}
	if whole == 0 || whole == len(verdicts) {
		t.Errorf("%d of %d bundles are intact: the damage does not vary", whole, len(verdicts))
	}
}

// judgeAll runs verify.py over the n bundles below root. It returns a line for each, with its
// exit code and the reported failures.
func judgeAll(t *testing.T, root string, n int, arguments ...string) (lines []string) {
	t.Helper()
	directories, err := os.ReadDir(root)
	if err != nil || len(directories) != n {
		t.Fatalf("%d directories for %d bundles: %v", len(directories), n, err)
	}
	for _, d := range directories {
		proof := filepath.Join(root, d.Name(), "session_proof")
		passed, output := python(t, proof, arguments...)
		sayTheSame(t, proof, output, arguments)
		line := "1 "
		if passed {
			line = "0 "
		}
		for text := range strings.Lines(output) {
			if strings.HasPrefix(text, "FAIL") {
				line += text
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// An agent's own actions may have the names of the two rows that frame a session, unless a
// verifier would mistake them for those rows.
func TestActionsMayBeCalledOpenAndSeal(t *testing.T) {
	in := sampleInput(0)
	in.TraceCount = 2
	in.Rows = SliceRows([]Row{
		{ActionType: ActionOpen, ToolName: "door.open", InputsJSON: "{}", OutputsJSON: "{}", Timestamp: 1},
		{ActionType: ActionSeal, ToolName: "letter.seal", InputsJSON: "{}", OutputsJSON: "{}", Timestamp: 2},
	})
	in.Members = nil
	bundle := build(t, in, testKey("k"))
	if report := judge(t, bundle.Bytes, Options{}); !report.Intact || report.Rows != 4 {
		t.Errorf("%+v", report)
	}
	if passed, output := python(t, unpack(t, bundle.Bytes)); !passed {
		t.Error(output)
	}
	for _, row := range []Row{{ActionType: ActionOpen, ToolName: openTool}, {ActionType: ActionSeal, ToolName: sealTool + "00"}} {
		if err := row.Check(); err == nil || !strings.Contains(err.Error(), "would be taken for the bundle's own") {
			t.Errorf("%+v: %v", row, err)
		}
	}
}
