package ledger_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/plumbline/plumbline/ledger"
)

// python runs the embedded verifier over files and returns what it prints.
func python(t *testing.T, files ...[]byte) (out string, ok bool) {
	t.Helper()
	dir := t.TempDir()
	script := filepath.Join(dir, "verify_ledger.py")
	write(t, script, ledger.Python)
	args := []string{"-I", script}
	for i, file := range files {
		path := filepath.Join(dir, fmt.Sprintf("%d.jsonl", i))
		write(t, path, file)
		args = append(args, path)
	}
	printed, err := exec.Command("python3", args...).CombinedOutput()
	if strings.Contains(string(printed), "Traceback") {
		t.Fatalf("the verifier crashed:\n%s", printed)
	}
	return string(printed), err == nil
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestPythonNamesTheSameFault(t *testing.T) {
	for name, c := range faulty(t) {
		out, ok := python(t, c.file)
		want := fmt.Sprintf("seq %d (line %d): %s", c.seq, c.seq+1, c.kind)
		if ok || !strings.Contains(out, want) {
			t.Errorf("%s: passed %v, want %q in\n%s", name, ok, want, out)
		}
	}
}

func TestPythonFollowsTheChain(t *testing.T) {
	first, chain := build(t, opening, `{"n":1}`)
	last := chain.Last()
	second, _ := build(t, ledger.Opening{Agent: "a", Created: opening.Created, ContinuesFrom: &last})
	if out, ok := python(t, first, second); !ok || !strings.Contains(out, "Not proven") || strings.Contains(out, "SKIP") {
		t.Errorf("a chain of two files: %s", out)
	}
	if out, ok := python(t, second); !ok || !strings.Contains(out, "it continues from "+last.String()+"; the file before it was not given") {
		t.Errorf("the second alone: %s", out)
	}
	if out, ok := python(t, second, first); ok || !strings.Contains(out, "continuation") {
		t.Errorf("in the wrong order: %s", out)
	}
}

// judgeEach has one Python process judge files and print one line for each.
const judgeEach = `
import sys
sys.path.insert(0, sys.argv[1])
import verify_ledger as v
for path in sys.argv[2:]:
    try:
        v.verify(path, None)
        print("whole")
    except v.Fault as e:
        print(e)
`

// TestNumbersAreWrittenAsHashed: 1.0 and 1 have the same hash. A file must contain the
// canonical one, and both verifiers refuse the other.
func TestNumbersAreWrittenAsHashed(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "verify_ledger.py"), ledger.Python)
	args, texts, want := []string{"-c", judgeEach, dir}, []string{}, []string{}
	judge := func(text string, file []byte, verdict string) {
		path := filepath.Join(dir, fmt.Sprintf("%d.jsonl", len(texts)))
		write(t, path, file)
		args, texts, want = append(args, path), append(texts, text), append(want, verdict)
		if _, err := ledger.Validate(bytes.NewReader(file), nil); (err == nil) != (verdict == "whole") || err != nil && !strings.HasPrefix(err.Error(), verdict) {
			t.Errorf("%s: Go reports %v, want %s", text, err, verdict)
		}
	}
	for form, others := range map[string][]string{
		"1":       {"1.0", "1e0", "1E0", "10e-1", "1.00000000000000000001"},
		"0":       {"-0", "0.0", "-0.0", "0e5", "1e-400"},
		"100":     {"1e2", "100.0"},
		"0.1":     {"1e-1", "0.10", "0.10000000000000000555"},
		"1e+21":   {"1e21", "1000000000000000000000"},
		"-1.5":    {"-1.50", "-15e-1"},
		"1e-7":    {"1e-07", "0.0000001"},
		"[1,2]":   {"[1,2.0]"},
		`{"a":1}`: {`{"a":1.0}`},
	} {
		file, _ := build(t, opening, `{"n":`+form+`}`)
		judge(form, file, "whole")
		for _, other := range others {
			changed := bytes.Replace(file, []byte(`{"n":`+form+`}`), []byte(`{"n":`+other+`}`), 1)
			judge(other, changed, "seq 1 (line 2): form: ")
			entry, err := ledger.ParseEntry(bytes.Split(changed, []byte("\n"))[1])
			if err != nil || string(entry.Data) != `{"n":`+form+`}` {
				t.Errorf("%s as the only entry: %v, error %v", other, entry, err)
			}
		}
	}
	out, err := exec.Command("python3", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for i, said := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		if !strings.HasPrefix(said, want[i]) {
			t.Errorf("%s: Python reports %s, want %s", texts[i], said, want[i])
		}
	}
}

// TestPythonCanonicalises gives Python a ledger of many random objects. Each hash covers the
// canonical form, so both languages must compute the same form.
func TestPythonCanonicalises(t *testing.T) {
	var entries []string
	rapid.Check(t, func(t *rapid.T) { entries = append(entries, fmt.Sprintf(`{"v":%s}`, value(t, 0))) })
	entries = append(entries, `{"v":[1e21,1e20,1e-6,1e-7,-0.0,0.1,5e-324,1.7976931348623157e308,123456789012345680000,9007199254740991,-1.5e-10]}`,
		`{"€":"\u2028\u000f\"\\/","😀":null,"דּ":true,"":{}}`, `{"deep":["\"[[",`+strings.Repeat("[", 62)+strings.Repeat("]", 62)+`,-0]}`)
	file, _ := build(t, opening, entries...)
	if out, ok := python(t, file); !ok {
		t.Error(out)
	}
}

// value draws the text of a JSON value.
func value(t *rapid.T, depth int) string {
	kinds := []string{"number", "integer", "text", "literal", "list", "object"}
	if depth > 3 {
		kinds = kinds[:4]
	}
	switch rapid.SampledFrom(kinds).Draw(t, "kind") {
	case "number":
		return fmt.Sprintf("%g", rapid.Float64().Draw(t, "number"))
	case "integer":
		return fmt.Sprint(rapid.Int64Range(1-1<<53, 1<<53-1).Draw(t, "integer"))
	case "text":
		return text(t)
	case "list":
		return fmt.Sprintf("[%s,%s]", value(t, depth+1), value(t, depth+1))
	case "object":
		return fmt.Sprintf(`{"a":%s,"b%s:%s}`, value(t, depth+1), text(t)[1:], value(t, depth+1))
	default:
		return rapid.SampledFrom([]string{"true", "false", "null"}).Draw(t, "literal")
	}
}

func text(t *rapid.T) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range rapid.String().Draw(t, "text") {
		if r < ' ' || r == '"' || r == '\\' {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	b.WriteByte('"')
	return b.String()
}

// A line that is far too long is not read into memory: the verifier with 256 MiB of it names the fault in a file of 4 GiB.
func TestPythonReadsNoLineOfAnyLength(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "verify_ledger.py"), ledger.Python)
	path := filepath.Join(dir, "long.jsonl")
	write(t, path, nil)
	if err := os.Truncate(path, 4<<30); err != nil { // takes no space
		t.Skipf("no sparse file here: %v", err)
	}
	const limited = "import resource\nresource.setrlimit(resource.RLIMIT_AS, (256 << 20, 256 << 20))\n" + judgeEach
	out, err := exec.Command("python3", "-c", limited, dir, path).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "seq 0 (line 1): form: the line is too long") {
		t.Errorf("%v: %s", err, out)
	}
}
