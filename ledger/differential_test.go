package ledger_test

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/plumbline/plumbline/ledger"
)

// judgeAll has one Python process judge pairs of files, each the previous file and the file
// that continues it. It prints one line for each pair.
const judgeAll = `
import os, sys
sys.path.insert(0, sys.argv[1])
import verify_ledger as v
for n in range(int(sys.argv[2])):
    try:
        first, _, _ = v.verify(os.path.join(sys.argv[1], "%d-first" % n), None)
        last, entries, _ = v.verify(os.path.join(sys.argv[1], "%d-second" % n), first)
        print("whole", entries, last)
    except v.Fault as e:
        print(":".join(str(e).split(":")[:2]))
`

// inGo does the same in Go.
func inGo(first, second []byte) string {
	before, err := ledger.Validate(bytes.NewReader(first), nil)
	if err == nil {
		var summary ledger.Summary
		if summary, err = ledger.Validate(bytes.NewReader(second), &before); err == nil {
			return fmt.Sprintf("whole %d %s", summary.Entries, summary.Last)
		}
	}
	var fault *ledger.Fault
	if !errors.As(err, &fault) {
		return err.Error()
	}
	return fmt.Sprintf("seq %d (line %d): %s", fault.Seq, fault.Line, fault.Kind)
}

// TestGoAndPythonFindTheSameFault damages a ledger of two files, once for each kind of fault and then
// at random. Both verifiers must name the same entry for the same reason.
func TestGoAndPythonFindTheSameFault(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed: apt-get install python3")
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "verify_ledger.py"), ledger.Python)
	var want, damages []string
	judge := func(first, second []byte, damage string) string {
		n := len(want)
		for name, data := range map[string][]byte{"first": first, "second": second} {
			write(t, filepath.Join(dir, fmt.Sprintf("%d-%s", n, name)), data)
		}
		want, damages = append(want, inGo(first, second)), append(damages, damage)
		return want[n]
	}
	first, second := twoFiles(t)
	elsewhere, _ := build(t, ledger.Opening{Agent: "a", Created: opening.Created, ContinuesFrom: new(ledger.Hash)}, `{"n":2}`)
	lines := bytes.SplitAfter(second, []byte("\n"))
	for kind, damaged := range map[string][]byte{
		ledger.FaultForm:         bytes.Replace(second, []byte(`{"n":3}`), []byte(`{"n":3`), 1),
		ledger.FaultHash:         bytes.Replace(second, []byte(`{"n":3}`), []byte(`{"n":5}`), 1),
		ledger.FaultGap:          slices.Concat(lines[0], lines[2]),
		ledger.FaultContinuation: elsewhere,
	} {
		if verdict := judge(first, damaged, kind); !strings.HasSuffix(verdict, ": "+kind) {
			t.Errorf("a fault of kind %s gave the verdict %q", kind, verdict)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		first, second := twoFiles(t)
		var done []string
		for range rapid.IntRange(1, 2).Draw(t, "damages") {
			file := rapid.SampledFrom([]*[]byte{&first, &second}).Draw(t, "file")
			var what string
			*file, what = damage(t, *file)
			done = append(done, what)
		}
		judge(first, second, strings.Join(done, ", "))
	})
	out, err := exec.Command("python3", "-c", judgeAll, dir, fmt.Sprint(len(want))).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got := strings.Split(strings.TrimSpace(string(out)), "\n")
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%s: Python reports %q, Go reports %q", damages[i], got[i], want[i])
		}
	}
}

// twoFiles returns a ledger of two files.
func twoFiles(t rapid.TB) (first, second []byte) {
	first, chain := build(t, opening, `{"n":1}`, `{"text":"é"}`, `{"list":[1.5,true,null]}`)
	last := chain.Last()
	second, _ = build(t, ledger.Opening{Agent: "a", Created: opening.Created, ContinuesFrom: &last}, `{"n":2}`, `{"n":3}`, `{"n":4}`)
	return first, second
}

// damage changes a file and describes the change.
func damage(t *rapid.T, file []byte) ([]byte, string) {
	lines := bytes.SplitAfter(bytes.TrimSuffix(file, []byte("\n")), []byte("\n"))
	i := rapid.IntRange(0, len(lines)-1).Draw(t, "line")
	j := rapid.IntRange(0, len(lines)-1).Draw(t, "other line")
	join := func(lines [][]byte) []byte { return bytes.Join(lines, nil) }
	switch what := rapid.SampledFrom([]string{"lost", "twice", "swapped", "byte", "cut", "put in", "replaced", "forged", "rehashed", "cut file"}).Draw(t, "damage"); what {
	case "lost":
		return join(slices.Delete(lines, i, i+1)), what
	case "twice":
		return join(slices.Insert(lines, j, lines[i])), what
	case "swapped":
		lines[i], lines[j] = lines[j], lines[i]
		return join(lines), what
	case "byte":
		file = bytes.Clone(file)
		if len(file) == 0 {
			return file, what
		}
		at := rapid.IntRange(0, len(file)-1).Draw(t, "place")
		file[at] = rapid.SampledFrom([]byte("0129afAF \t\r\n\"\\{}[]:,.-+eE\x00\x7f\x80\xff")).Draw(t, "byte")
		return file, fmt.Sprintf("%s %d: %q", what, at, file)
	case "cut":
		lines[i] = lines[i][:rapid.IntRange(0, len(lines[i])).Draw(t, "length")]
		return join(lines), what
	case "cut file":
		return file[:rapid.IntRange(0, len(file)).Draw(t, "length")], what
	case "put in":
		line := rapid.SampledFrom([]string{"\n", " \n", "{}\n", "null\n", "\xef\xbb\xbf{}\n", "{\"seq\":NaN}\n", "[[\n"}).Draw(t, "text")
		return join(slices.Insert(lines, i, []byte(line))), fmt.Sprintf("%s %q", what, line)
	case "replaced":
		pair := rapid.SampledFrom([][2]string{
			{`"seq":`, `"seq":-`}, {`"seq":`, `"seq":0`}, {`"seq":`, `"seq":1`}, {`"seq":`, `"seq": `}, {`"seq":`, `"seq":900719925474099`}, {`"seq":`, `"s\u0065q":`},
			{`"seq":`, `"seq":true,"x":`}, {`,"type"`, `.0,"type"`}, {`,"type"`, `e0,"type"`}, {"CLAIM", "VERIFY"}, {"CLAIM", "GENESIS"}, {"GENESIS", "CLAIM"}, {"CLAIM", "claim"},
			{`"data":{`, `"data":{"z":1,`}, {`"data":{`, `"data":{"z":"\ud800",`}, {`"data":{`, `"data":{"z":1e400,`}, {`"data":{`, `"data":{"z":9007199254740993,`},
			{`"data":{`, `"data":{"continues_from":null,`}, {`"continues_from":"`, `"continues_from":"0`}, {`"continues_from"`, `"continues"`}, {`"data":{`, `"data":[{`},
			{`"n":`, `"n":1e`}, {`}`, `.0}`}, {`}`, `e0}`}, {`"data":{`, `"data":{"z":-0,`}, {`"data":{`, `"data":{"z":1.0,`}, {`1.5`, `1.50`},
			{`"n":`, `"n":-`}, {`"n":`, `"n":0.`}, {`"hash":"`, `"hash":"0`}, {`"hash":"`, `"hash":null,"h":"`}, {"\n", "\r\n"}, {"\n", ""}, {"}\n", "}}\n"},
		}).Draw(t, "text")
		lines[i] = bytes.Replace(lines[i], []byte(pair[0]), []byte(pair[1]), 1)
		return join(lines), fmt.Sprintf("%s %q in %s", what, pair, lines[i])
	default: // one entry with a correct hash, or a ledger that is correct from that entry on
		return forge(t, lines, i, what == "forged"), what
	}
}

// forge changes an entry and recomputes its hash, and with onward also the hashes of all
// entries after it. Then only the end of the first file or the start of the next one shows the
// change.
func forge(t *rapid.T, lines [][]byte, i int, onward bool) []byte {
	var chain ledger.Chain
	var out []byte
	for n, line := range lines {
		entry, err := ledger.ParseLine(bytes.TrimSpace(line))
		if err != nil || n < i || n > i && !onward {
			out = append(out, line...)
			if err == nil {
				chain = ledger.Resume(entry)
			}
			continue
		}
		if n == i {
			change := rapid.SampledFrom([]string{"data", "seq", "type"}).Draw(t, "member")
			switch change {
			case "data":
				entry.Data = fmt.Appendf(nil, `{"forged":%d}`, n)
			case "seq":
				entry.Seq += uint64(rapid.IntRange(0, 3).Draw(t, "by"))
			default:
				entry.Type = rapid.SampledFrom([]ledger.Type{ledger.Genesis, ledger.Boot, ledger.Meta}).Draw(t, "type")
			}
		}
		entry.Hash = ledger.HashEntry(chain.Last(), entry.Seq, entry.Type, entry.Data)
		out = entry.AppendLine(out)
		chain = ledger.Resume(entry)
	}
	return out
}
