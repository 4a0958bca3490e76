// Package docs checks that the documents agree with the tree.
package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// testName matches `directory.Test` in a table's last column.
var testName = regexp.MustCompile("`([a-z0-9/]+)\\.((?:Test|Fuzz|Benchmark)[A-Za-z0-9_]+)`")

// claim is one line of docs/CONFORMANCE.md.
type claim struct {
	rule, status, tests string
}

func claims(t *testing.T) (found []claim) {
	t.Helper()
	text, err := os.ReadFile("CONFORMANCE.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 6 || strings.HasPrefix(cells[1], "-") || strings.TrimSpace(cells[1]) == "§" {
			if strings.HasPrefix(line, "|") && len(cells) != 6 {
				t.Errorf("not four columns: %s", line)
			}
			continue
		}
		found = append(found, claim{
			rule:   strings.TrimSpace(cells[1]) + " " + strings.TrimSpace(cells[2]),
			status: strings.TrimSpace(cells[3]),
			tests:  cells[4],
		})
	}
	if len(found) == 0 {
		t.Fatal("CONFORMANCE.md has no lines")
	}
	return found
}

func TestConformanceNamesTestsThatExist(t *testing.T) {
	for _, c := range claims(t) {
		names := testName.FindAllStringSubmatch(c.tests, -1)
		if len(names) != strings.Count(c.tests, "`")/2 {
			t.Errorf("%s: %s is not a list of `directory.Test`", c.rule, c.tests)
		}
		claimed := strings.HasPrefix(c.status, "yes") || strings.HasPrefix(c.status, "deviates, because ")
		switch {
		case claimed && len(names) == 0:
			t.Errorf("%s: claimed without a test", c.rule)
		case !claimed && c.status != "not yet":
			t.Errorf("%s: status %q, want yes, deviates, because …, or not yet", c.rule, c.status)
		}
		for _, name := range names {
			if !exists(t, name[1], name[2]) {
				t.Errorf("%s: there is no %s in %s", c.rule, name[2], name[1])
			}
		}
	}
}

// exists reports whether a directory's tests declare function.
func exists(t *testing.T, directory, function string) bool {
	t.Helper()
	return strings.Contains(testsOf(t, directory), "\nfunc "+function+"(")
}

// testsOf returns the source of a directory's tests.
func testsOf(t *testing.T, directory string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(directory), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(source)
	}
	return all.String()
}
