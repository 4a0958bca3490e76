package floors

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// make test runs the tests of some packages without the race detector: neither the packages, nor what they
// import of ours, nor their tests start a goroutine, so that there is no second one to race with.
func TestPackagesWithoutRaceDetectorStartNoGoroutine(t *testing.T) {
	look(t, root)
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`(?m)^ONE_GOROUTINE := ((?:.*\\\n)*.*)$`).FindSubmatch(makefile)
	if named == nil {
		t.Fatal("the Makefile has no ONE_GOROUTINE")
	}
	files := filesOf(t, strings.Fields(strings.ReplaceAll(string(named[1]), "\\\n", " ")))
	if len(files) < 200 {
		t.Errorf("only %d files are checked", len(files))
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, place := range starts(t, path, text) {
			t.Errorf("%s: its package is in ONE_GOROUTINE of the Makefile, or a package there imports it: remove the package from there", place)
		}
	}
}

// filesOf returns the files of packages, of their tests, and of what they import of ours.
func filesOf(t *testing.T, packages []string) (files []string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", append([]string{"list", "-deps", "-test", "-json=ImportPath,Dir,GoFiles,Module"}, packages...)...)
	command.Dir = root
	command.Stderr = t.Output()
	listed, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	for decoder := json.NewDecoder(listed); ; {
		var p struct {
			ImportPath, Dir string
			GoFiles         []string
			Module          struct{ Main bool }
		}
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if p.Module.Main && !strings.HasSuffix(p.ImportPath, ".test") { // that one is generated
			for _, name := range p.GoFiles {
				files = append(files, filepath.Join(p.Dir, name))
			}
		}
	}
	if err := command.Wait(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// starts returns the places in a file that start a goroutine: go statements, calls of methods that are named as
// those that do so, and the import of httptest, whose servers call a test's code.
func starts(t *testing.T, path string, text []byte) (places []string) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	found := func(n ast.Node, what string) {
		places = append(places, fmt.Sprintf("%s: %s", set.Position(n.Pos()), what))
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found(n, "go statement")
		case *ast.SelectorExpr:
			if slices.Contains([]string{"Go", "TryGo", "Parallel", "RunParallel", "AfterFunc"}, n.Sel.Name) {
				found(n, n.Sel.Name)
			}
		case *ast.ImportSpec:
			if n.Path.Value == `"net/http/httptest"` {
				found(n, "import of httptest")
			}
		}
		return true
	})
	return places
}

// Each test that skips with the race detector is run without it by make test, which names its package or the test.
func TestTestsWithoutRaceDetectorRun(t *testing.T) {
	look(t, root)
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	_, recipe, _ := strings.Cut(string(makefile), "\ntest:\n")
	recipe, _, _ = strings.Cut(recipe, "\n\n")
	alone := regexp.MustCompile(`(?m)^WITHOUT_RACE := (.*)$`).FindSubmatch(makefile)
	if alone == nil {
		t.Fatal("the Makefile has no WITHOUT_RACE")
	}
	names, found := strings.Fields(string(alone[1])), 0
	skip := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\) \{\n\tif raceEnabled \{\n\t\tt\.Skip\(`)
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		for _, match := range skip.FindAllSubmatch(text, -1) {
			found++
			whole := strings.Contains(recipe, "$(ONE_GOROUTINE) ./"+dir+"\n")
			if named := slices.Contains(names, string(match[1])) && strings.Contains(recipe, "$(WITHOUT_RACE)))$$' ./"+dir+"\n"); !whole && !named {
				t.Errorf("%s: %s skips with the race detector, and make test does not run it without", path, match[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < len(names)+1 {
		t.Errorf("%d tests skip with the race detector, the Makefile names %q", found, names)
	}
}

func TestStartsOfGoroutinesAreFound(t *testing.T) {
	for body, want := range map[string]int{
		"go f()": 1, "group.Go(f)": 1, "if group.TryGo(f) {}": 1, "t.Parallel()": 1, "b.RunParallel(f)": 1, "time.AfterFunc(0, f)": 1,
		"for { go func() { go f() }() }": 2, "f()": 0, "x.Going()": 0, `s := "go f()"`: 0,
	} {
		if got := starts(t, "a.go", []byte("package a\nfunc a() { "+body+" }\n")); len(got) != want {
			t.Errorf("%s: %q", body, got)
		}
	}
	if got := starts(t, "a.go", []byte("package a\nimport \"net/http/httptest\"\n")); len(got) != 1 {
		t.Errorf("httptest: %q", got)
	}
}
