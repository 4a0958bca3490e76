// Package published reads the published vectors and the recorded sessions that tests compare with. They are not part of this
// repository: conformance, corpus and specs are directories of ../shared.
package published

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Path returns the path of a file or directory of ../shared, such as "conformance/aap". It skips the test if ../shared lacks the
// first directory of the name. If only the rest is missing, the test fails: a name that is wrong must not hide what was to be compared.
func Path(t testing.TB, name string) string {
	t.Helper()
	first, _, _ := strings.Cut(name, "/")
	shared := filepath.Join(repository(t), "..", "shared")
	if _, err := os.Stat(filepath.Join(shared, first)); err != nil {
		t.Skipf("../shared/%s, which is no part of the repository, is not next to it (CONTRIBUTING.md, Tests): %v", first, err)
	}
	path := filepath.Join(shared, filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// Read returns the content of a file.
func Read(t testing.TB, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(Path(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// Lines returns the lines of a file, which it decompresses if the name ends in .gz.
func Lines(t testing.TB, name string) [][]byte {
	t.Helper()
	content := Read(t, name)
	if strings.HasSuffix(name, ".gz") {
		unzip, err := gzip.NewReader(bytes.NewReader(content))
		if err == nil {
			content, err = io.ReadAll(unzip)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return bytes.Split(bytes.TrimSpace(content), []byte("\n"))
}

// repository returns the directory of go.mod, above that of the package whose test runs.
func repository(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	for err == nil {
		if _, err = os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if above := filepath.Dir(dir); above != dir {
			dir, err = above, nil
		}
	}
	t.Fatalf("no go.mod above the test's directory: %v", err)
	return ""
}
