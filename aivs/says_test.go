package aivs

import (
	"archive/tar"
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/plumbline/plumbline/aivs/aivstest"
)

// says.go and class Says of verify.py have the same sentences under the same names.
func TestSentencesAreOneList(t *testing.T) {
	inGo := map[string]string{}
	file, err := parser.ParseFile(token.NewFileSet(), "says.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		name, ours := strings.CutPrefix(spec.Names[0].Name, "says")
		if ours {
			inGo[upperSnake(name)] = unquoted(t, spec.Values[0].(*ast.BasicLit).Value)
		}
		return true
	})
	inPython := pythonSentences(t)
	if len(inGo) < 80 || !maps.Equal(inGo, inPython) {
		t.Errorf("%d sentences in Go, %d in Python", len(inGo), len(inPython))
		for _, name := range slices.Sorted(maps.Keys(inGo)) {
			if inGo[name] != inPython[name] {
				t.Errorf("%s: Go says %q, Python %q", name, inGo[name], inPython[name])
			}
		}
	}
}

// pythonSentences returns the sentences of verify.py by their names.
func pythonSentences(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	_, class, _ := strings.Cut(string(verifier), "class Says:")
	class, _, _ = strings.Cut(class, "\n# ----")
	for _, m := range regexp.MustCompile(`(?m)^    ([A-Z0-9_]+) = (".*")$`).FindAllStringSubmatch(class, -1) {
		found[m[1]] = unquoted(t, m[2])
	}
	return found
}

func unquoted(t *testing.T, literal string) string {
	t.Helper()
	text, err := strconv.Unquote(literal)
	if err != nil {
		t.Fatalf("%s: %v", literal, err)
	}
	return text
}

// upperSnake returns NotJSON as NOT_JSON.
func upperSnake(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		begins := i > 0 && unicode.IsUpper(r) && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
		if begins {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToUpper(r))
	}
	return b.String()
}

// Both verifiers know the same earlier versions of verify.py, and not the present one: its own
// digest cannot be in it.
func TestFormerVerifiersAreOneList(t *testing.T) {
	inGo := map[string]string{}
	for digest, f := range formerVerifiers {
		if !f.known {
			t.Errorf("%s is not marked as known", digest)
		}
		inGo[digest] = map[bool]string{true: "True", false: "False"}[f.attested]
	}
	inPython := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^    "([0-9a-f]{64})": (True|False),$`).FindAllSubmatch(verifier, -1) {
		inPython[string(m[1])] = string(m[2])
	}
	if len(inGo) < 14 || !maps.Equal(inGo, inPython) {
		t.Errorf("Go knows %v, Python %v", inGo, inPython)
	}
	if _, former := formerVerifiers[hexSHA256(verifier)]; former {
		t.Error("the present verify.py is in the list of earlier ones")
	}
}

// sayTheSame compares what verify.py says of an unpacked bundle with what Go says of the same files
// in an archive. verify.py ends at the first fault; Go lists those of all files. So each fault that
// verify.py reports must be among those of Go, word for word, and for an intact bundle every line
// about a check must be the same.
func sayTheSame(t testing.TB, directory, output string, arguments []string) {
	t.Helper()
	content := archived(t, directory)
	if content == nil {
		return // no archive can hold such files
	}
	var options Options
	for i := range arguments {
		if arguments[i] == "--key" {
			key, err := hex.DecodeString(arguments[i+1])
			if err != nil {
				t.Fatal(err)
			}
			options.Keys = append(options.Keys, ed25519.PublicKey(key))
		}
	}
	report := judge(t, aivstest.Gzip(t, content), options)
	report.Faults = slices.DeleteFunc(report.Faults, func(f Fault) bool { // what packing the files again brings in
		return f.Where == archivePlace && strings.Contains(f.Message, " after it was made: ")
	})
	if len(report.Faults) == 0 && !report.Intact {
		if strings.Contains(output, "FAIL  ") {
			t.Errorf("%s: Go finds no fault, and Python says\n%s", directory, output)
		}
		return
	}
	var text strings.Builder
	if err := report.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	inGo, inPython := checkLines(text.String()), checkLines(output)
	failed := func(line string) bool { return !strings.HasPrefix(line, "FAIL  ") }
	if report.Intact {
		if !slices.Equal(slices.Sorted(slices.Values(inGo)), slices.Sorted(slices.Values(inPython))) {
			t.Errorf("%s: Go says\n%s\nPython says\n%s", directory, strings.Join(inGo, "\n"), strings.Join(inPython, "\n"))
		}
		return
	}
	for _, line := range slices.DeleteFunc(inPython, failed) {
		if !slices.Contains(inGo, line) {
			t.Errorf("%s: Python says\n%s\nGo says\n%s", directory, line, strings.Join(slices.DeleteFunc(inGo, failed), "\n"))
		}
	}
}

// checkLines returns the lines about checks, and the two conclusions.
func checkLines(output string) (lines []string) {
	for line := range strings.SplitSeq(output, "\n") {
		for _, label := range []string{"PASS  ", "FAIL  ", "SKIP  ", "INTACT", "NOT INTACT", "Verdict recorded inside"} {
			if strings.HasPrefix(line, label) {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// archived returns the files of a directory in an archive, in the order of a bundle as far as their
// names tell; nil for files that no archive of a bundle can hold.
func archived(t testing.TB, directory string) []byte {
	t.Helper()
	var names []string
	place := func(name string) int {
		return slices.Index([]string{logFile, manifestFile, keyFile, signatureName, verifierFile, previousFile, TracesMember, VerdictsMember, SessionMember}, name)
	}
	err := filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(directory, path)
		switch {
		case err != nil:
		case entry.IsDir() && place(name) >= 0, !entry.IsDir() && !entry.Type().IsRegular():
			err = fs.ErrInvalid
		case !entry.IsDir():
			names = append(names, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		return nil
	}
	slices.SortFunc(names, func(a, b string) int {
		last := func(name string) int { return strings.Compare(name, attestationFile) }
		x, y := place(a), place(b)
		switch {
		case last(a) == 0 || last(b) == 0:
			return map[bool]int{true: 1, false: -1}[last(a) == 0]
		case x >= 0 && y >= 0:
			return x - y
		case x >= 0 || y >= 0:
			return y - x
		}
		return strings.Compare(a, b)
	})
	var content bytes.Buffer
	w := tar.NewWriter(&content)
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(directory, filepath.FromSlash(name)))
		if err != nil {
			return nil
		}
		if err := w.WriteHeader(header(name, int64(len(data)))); err != nil {
			return nil
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return content.Bytes()
}
