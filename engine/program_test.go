package engine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/engine"
	"github.com/plumbline/plumbline/engine/protocol"
)

// script writes an executable shell script.
func script(t *testing.T, dir, name, body string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestNamedProgram(t *testing.T) {
	dir := t.TempDir()
	library := script(t, dir, "libchdb.so", "")
	binary := script(t, dir, "clickhouse", "")
	for path, want := range map[string]engine.Program{
		library: {Library: library},
		binary:  {Binary: binary},
	} {
		t.Setenv(engine.Variable, path)
		if got, err := engine.Locate(t.Context(), engine.Options{}); err != nil || got != want {
			t.Errorf("%s: %+v, error %v", path, got, err)
		}
	}
	for _, path := range []string{filepath.Join(dir, "absent"), dir} {
		t.Setenv(engine.Variable, path)
		_, err := engine.Locate(t.Context(), engine.Options{})
		if err == nil || !strings.Contains(err.Error(), engine.Variable+"="+path) {
			t.Errorf("%s: error %v", path, err)
		}
	}
}

func TestClickHouseOnPathIsUsedUnlessTooOld(t *testing.T) {
	t.Setenv(engine.Variable, "")
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	opts := engine.Options{CacheDir: filepath.Join(dir, "cache")}
	binary := script(t, dir, "clickhouse", "echo 'ClickHouse local version 26.8.1.1 (official build).'")
	if got, err := engine.Locate(t.Context(), opts); err != nil || got.Binary != binary {
		t.Errorf("new binary: %+v, error %v", got, err)
	}
	for _, unusable := range []string{"echo 'ClickHouse local version 18.16.1.'", "exit 1", "echo hello"} {
		script(t, dir, "clickhouse", unusable)
		if got, err := engine.Locate(t.Context(), opts); err == nil {
			t.Errorf("%s: %+v", unusable, got)
		}
	}
}

func TestNothingFoundSaysWhatToDo(t *testing.T) {
	t.Setenv(engine.Variable, "")
	t.Setenv("PATH", t.TempDir())
	_, err := engine.Locate(t.Context(), engine.Options{CacheDir: t.TempDir()})
	if err == nil {
		t.Fatal("an engine was found in an empty cache and an empty PATH")
	}
	for _, remedy := range []string{"install npm", "DSN", "clickhouse binary on PATH", engine.Variable} {
		if !strings.Contains(err.Error(), remedy) {
			t.Errorf("the error does not name the remedy %q: %v", remedy, err)
		}
	}
}

// An official binary gets its configuration, runs on it and ends on SIGTERM.
// Here it is a script that executes the pinned library as this package's child does.
// An endless pipe replaces the parent's pipe. The script also configures the user of the
// library's own session, which an official binary does not need and must not get.
func TestForeignBinaryIsSupervised(t *testing.T) {
	library := pinnedLibrary(t)
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	binary := script(t, dir, "clickhouse", fmt.Sprintf(`
[ "$1" = server ] && [ "$2" = "--config-file=%[1]s/config.xml" ] || exit 9
grep -q SYSTEM %[1]s/users.xml && exit 8
sed -i 's|<users>|<users><default><password/><grants><query>GRANT SYSTEM LISTEN ON *.*</query></grants></default>|' %[1]s/users.xml
mkfifo %[2]s/fifo && exec 3<>%[2]s/fifo
exec %[3]s __child %[4]s`, data, dir, self, strings.Join(append([]string{protocol.Child}, protocol.Arguments{Library: library, Dir: data}.Words()...), " ")))
	e := start(t, engine.Config{DataDir: data, Program: engine.Program{Binary: binary}})
	if n := count(t, connect(t, e.ReaderDSN()), "SELECT count() FROM numbers(7)"); n != 7 {
		t.Errorf("the foreign binary counts %d of 7", n)
	}
}

// A host whose loader is missing, as on a system without glibc, is not reported as a missing file alone.
func TestMissingLoaderIsReported(t *testing.T) {
	host := filepath.Join(t.TempDir(), protocol.Program)
	if err := os.WriteFile(host, []byte("#!/no/such/loader\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := engine.Start(t.Context(), engine.Config{DataDir: t.TempDir(), Program: engine.Program{Library: "libchdb.so", Host: host}})
	if err == nil || !strings.Contains(err.Error(), "needs the loader of glibc") {
		t.Errorf("error %v", err)
	}
}
