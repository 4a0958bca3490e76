package floors

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	root   = "../.."
	module = "github.com/plumbline/plumbline"
)

func TestFloors(t *testing.T) {
	look(t, root)
	g := load(t, root, module)
	for i := range table {
		for _, breach := range g.breaches(&table[i]) {
			t.Error(breach)
		}
	}
	for i := range owners {
		for _, intruder := range g.intruders(&owners[i]) {
			t.Error(intruder)
		}
	}
	g.demandLive(t)
}

// demandLive fails for patterns and exemptions that match nothing: after a rename, the new name
// would not be checked.
func (g *graph) demandLive(t *testing.T) {
	t.Helper()
	var patterns []string
	for _, f := range table {
		patterns = list(patterns, f.of, f.only, f.never)
	}
	for _, o := range owners {
		patterns = list(patterns, o.of, o.by)
	}
	slices.Sort(patterns)
	for _, pattern := range slices.Compact(patterns) {
		there := false
		for path := range g.packages {
			there = there || covers(strings.TrimPrefix(pattern, "-"), g.short(path))
		}
		if !there {
			t.Errorf("the table names %s, but there is no such package: correct the table", pattern)
		}
	}
	for path, e := range exempt {
		for _, name := range e.imports {
			if n := g.packages[path]; n == nil || !slices.Contains(n.Imports, name) {
				t.Errorf("%s no longer imports %s (%s): remove it from the table", path, name, e.why)
			}
		}
	}
}

// A leak is found at any distance, and its whole path is reported.
func TestLeaksAreFound(t *testing.T) {
	directory := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":        "module example.test/m\n\ngo 1.26\n",
		"top/a.go":      "package top\n\nimport _ \"example.test/m/mid\"\n",
		"mid/a.go":      "package mid\n\nimport _ \"example.test/m/low\"\n",
		"low/a.go":      "package low\n\nimport _ \"net/http\"\n",
		"low/a_test.go": "package low\n\nimport _ \"os\"\n", // tests may import it
		"side/a.go":     "package side\n\nimport _ \"fmt\"\n",
	} {
		path := filepath.Join(directory, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g := load(t, directory, "example.test/m")
	for name, c := range map[string]struct {
		floor floor
		want  string // the beginning of the only breach; empty for none
	}{
		"I/O, far down":               {floor{of: list("top"), pure: true}, "top -> mid -> low -> net/http: top must not reach net/http"},
		"reported where it begins":    {floor{of: list("..."), pure: true}, "low -> net/http: low must not reach net/http"},
		"fmt is no I/O":               {floor{of: list("side"), pure: true}, ""},
		"a package of ours":           {floor{of: list("top"), never: list("low")}, "top -> mid -> low: top must not reach low"},
		"a tree":                      {floor{of: list("top"), never: list("low/...")}, "top -> mid -> low: top must not reach low"},
		"a package not on the list":   {floor{of: list("top"), only: list("mid")}, "top -> mid -> low: top must not reach low"},
		"all are on the list":         {floor{of: list("top"), only: list("mid", "low")}, ""},
		"packages are excluded":       {floor{of: list("...", "-top", "-mid"), never: list("low")}, ""},
		"two packages apart":          {floor{of: list("mid", "low"), never: list("mid", "low")}, "mid -> low: mid must not reach low"},
		"a name with the same prefix": {floor{of: list("top"), never: list("lo/...", "mi")}, ""},
	} {
		found := g.breaches(&c.floor)
		if c.want == "" && len(found) > 0 || c.want != "" && (len(found) != 1 || !strings.HasPrefix(found[0], c.want)) {
			t.Errorf("%s: found %q, want %q", name, found, c.want)
		}
	}
	if found := g.intruders(&owner{of: "net/...", by: list("mid")}); len(found) != 1 || !strings.HasPrefix(found[0], "low -> net/http: only mid") {
		t.Errorf("an intruder: found %q", found)
	}
	if found := g.intruders(&owner{of: "net/...", by: list("low")}); len(found) > 0 {
		t.Errorf("an owner: found %q", found)
	}
}
