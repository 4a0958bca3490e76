package floors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// graph has the direct imports of each package, without tests.
type graph struct {
	module   string // path of the module under test
	packages map[string]*node
}

type node struct {
	ImportPath string
	Standard   bool
	Imports    []string
}

// load reads the module in a directory with one call of go list, for this platform.
func load(t *testing.T, directory, module string) *graph {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Standard,Imports", "./...")
	command.Dir = directory
	var stderr bytes.Buffer
	command.Stderr = &stderr
	listed, err := command.Output()
	if err != nil {
		t.Fatalf("go list in %s: %v\n%s", directory, err, &stderr)
	}
	g := &graph{module: module, packages: map[string]*node{}}
	decoder := json.NewDecoder(bytes.NewReader(listed))
	for {
		var n node
		err := decoder.Decode(&n)
		if errors.Is(err, io.EOF) {
			return g
		}
		if err != nil {
			t.Fatal(err)
		}
		g.packages[n.ImportPath] = &n
	}
}

// look opens every directory below root. Otherwise go test would use a cached result after a
// file changed, because it does not see what go list reads.
func look(t *testing.T, root string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && path != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "node_modules") {
			return filepath.SkipDir
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// short returns a package's name in the table.
func (g *graph) short(path string) string {
	if own, ours := strings.CutPrefix(path, g.module+"/"); ours {
		return own
	}
	return path
}

func (g *graph) ours(path string) bool { return strings.HasPrefix(path, g.module+"/") }

// ownPackages returns the packages of the module that match the patterns, sorted.
func (g *graph) ownPackages(patterns []string) (paths []string) {
	for path := range g.packages {
		if g.ours(path) && matches(patterns, g.short(path)) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// shortest returns, for each package that can be reached from a package, the package that
// imports it on a shortest path. It does not follow the imports of the standard library.
func (g *graph) shortest(from string) (order []string, importer map[string]string) {
	order, importer = []string{from}, map[string]string{from: ""}
	for i := 0; i < len(order); i++ {
		n := g.packages[order[i]]
		if n == nil || n.Standard {
			continue
		}
		for _, next := range n.Imports {
			if _, seen := importer[next]; !seen {
				importer[next] = order[i]
				order = append(order, next)
			}
		}
	}
	return order, importer
}

// path returns how the start of the search reaches a package, both included.
func path(to string, importer map[string]string) (steps []string) {
	for ; to != ""; to = importer[to] {
		steps = append(steps, to)
	}
	slices.Reverse(steps)
	return steps
}

// breaches returns where a floor does not hold, each with the whole path. A leak is reported
// only where it begins, not again for a package that reaches it through one of the same floor.
func (g *graph) breaches(f *floor) (found []string) {
	bound := g.ownPackages(f.of)
	for _, from := range bound {
		order, importer := g.shortest(from)
		for _, to := range order[1:] {
			if !g.forbids(f, from, importer[to], to) {
				continue
			}
			steps := path(to, importer)
			if slices.ContainsFunc(steps[1:len(steps)-1], func(step string) bool { return slices.Contains(bound, step) && g.forbids(f, step, importer[to], to) }) {
				continue
			}
			for i := range steps {
				steps[i] = g.short(steps[i])
			}
			found = append(found, fmt.Sprintf("%s: %s must not reach %s: %s", strings.Join(steps, " -> "), steps[0], g.short(to), f.why))
			break // the shortest path; there may be others
		}
	}
	return found
}

// forbids reports whether a floor forbids that a package reaches another one, which importer imports.
func (g *graph) forbids(f *floor, from, importer, to string) bool {
	name := g.short(to)
	switch {
	case f.only != nil && g.ours(to) && !matches(f.only, name):
		return true
	case slices.ContainsFunc(f.never, func(pattern string) bool { return covers(pattern, name) && !covers(pattern, g.short(from)) }):
		return true
	default:
		return f.pure && matches(inputOutput, name) && !slices.Contains(exempt[importer].imports, name)
	}
}

// intruders returns packages that import what only an owner may import.
func (g *graph) intruders(o *owner) (found []string) {
	for _, from := range g.ownPackages([]string{"..."}) {
		for _, to := range g.packages[from].Imports {
			if covers(o.of, to) && !matches(o.by, g.short(from)) {
				found = append(found, fmt.Sprintf("%s -> %s: only %s may import it: %s", g.short(from), to, strings.Join(o.by, ", "), o.why))
			}
		}
	}
	return found
}

// list joins patterns and lists of patterns.
func list(parts ...any) (patterns []string) {
	for _, part := range parts {
		switch part := part.(type) {
		case string:
			patterns = append(patterns, part)
		case []string:
			patterns = append(patterns, part...)
		}
	}
	return patterns
}

// without returns patterns that exclude the packages of the given ones.
func without(patterns []string) (out []string) {
	for _, pattern := range patterns {
		out = append(out, "-"+pattern)
	}
	return out
}

// matches reports whether one of the patterns covers a name and none excludes it.
func matches(patterns []string, name string) (found bool) {
	for _, pattern := range patterns {
		if rest, out := strings.CutPrefix(pattern, "-"); !out {
			found = found || covers(pattern, name)
		} else if covers(rest, name) {
			return false
		}
	}
	return found
}

// covers reports whether a pattern covers a name: "a" covers a, "a/..." covers a and all below it.
func covers(pattern, name string) bool {
	if pattern == "..." {
		return true
	}
	tree, below := strings.CutSuffix(pattern, "/...")
	return name == tree || below && strings.HasPrefix(name, tree+"/")
}
