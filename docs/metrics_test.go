package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A metric is in the source as a literal of its full name, and in
// METRICS.md at the beginning of a table row.
var (
	metricInSource   = regexp.MustCompile(`Name:\s*"(plumbline_[a-z0-9_]+)"|New(?:Counter|Gauge|Histogram|Desc)[A-Za-z]*\("(plumbline_[a-z0-9_]+)"`)
	metricInDocument = regexp.MustCompile("(?m)^\\| `(plumbline_[a-z0-9_]+)`")
)

func TestEveryMetricIsDocumented(t *testing.T) {
	source := metricsOfSource(t)
	text, err := os.ReadFile("METRICS.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, match := range metricInDocument.FindAllStringSubmatch(string(text), -1) {
		documented = append(documented, match[1])
	}
	for _, name := range source {
		if !slices.Contains(documented, name) {
			t.Errorf("%s is not in METRICS.md", name)
		}
	}
	for _, name := range documented {
		if !slices.Contains(source, name) {
			t.Errorf("%s of METRICS.md is not in the source", name)
		}
	}
	if len(source) == 0 {
		t.Error("no metric found in the source: the expression has gone stale")
	}
}

func metricsOfSource(t *testing.T) (names []string) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == ".git"):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, match := range metricInSource.FindAllStringSubmatch(string(text), -1) {
			names = append(names, match[1]+match[2])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
