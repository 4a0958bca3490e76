package durable_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/plumbline/plumbline/pipeline/durable"
)

func TestWriteFileReplacesTheWholeFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bundle.tar.gz")
	for _, content := range []string{"first, and longer", "second"} {
		if err := durable.WriteFile(path, []byte(content), 0o640); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != content {
			t.Errorf("read %q, wrote %q", got, content)
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o640 {
		t.Errorf("mode %o, want 640", info.Mode().Perm())
	}
	onlyFile(t, path)
}

func TestWriteFileLeavesNothingBehindOnFailure(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "taken")
	if err := os.MkdirAll(filepath.Join(path, "by a directory"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := durable.WriteFile(path, []byte("x"), 0o600); err == nil {
		t.Fatal("no error although a directory has the name")
	}
	onlyFile(t, path)
}

func TestRemoveStagedKeepsOtherFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := durable.RemoveStaged(filepath.Join(dir, "no directory", "file")); err != nil {
		t.Error(err)
	}
	for _, name := range []string{".file.123", ".file.4", "file", ".file2.1", ".file"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := durable.RemoveStaged(path); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 3 {
		t.Errorf("directory holds %v, %v; want the three that are not staged for %s", entries, err, path)
	}
}

// onlyFile fails unless path is the only file in its directory.
func onlyFile(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].Name() != filepath.Base(path) {
		t.Errorf("directory holds %v, want only %s", entries, filepath.Base(path))
	}
}

func TestRenameAcrossDirectories(t *testing.T) {
	dir := t.TempDir()
	for _, sub := range []string{"staged", "final/2026/11"} {
		if err := durable.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	from, to := filepath.Join(dir, "staged", "a"), filepath.Join(dir, "final", "2026", "11", "b")
	if err := durable.WriteFile(from, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := durable.Rename(from, to); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(from); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("old name: %v, want that it does not exist", err)
	}
	if _, err := os.Stat(to); err != nil {
		t.Errorf("new name: %v", err)
	}
	for range 2 { // the second time it is already gone
		if err := durable.Remove(to); err != nil {
			t.Error(err)
		}
	}
}

func TestMkdirAllRefusesAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := durable.MkdirAll(path, 0o755); err == nil {
		t.Error("a directory replaced a file")
	}
	if err := durable.MkdirAll(filepath.Join(path, "below"), 0o755); err == nil {
		t.Error("a directory was created below a file")
	}
}

func TestLockNamesItsHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	lock, err := durable.Acquire(path, "the first engine")
	if err != nil {
		t.Fatal(err)
	}
	_, err = durable.Acquire(path, "the second engine")
	if !errors.Is(err, durable.ErrLocked) || !strings.Contains(err.Error(), "the first engine") {
		t.Errorf("second lock: %v, want ErrLocked naming the first engine", err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	again, err := durable.Acquire(path, "the third")
	if err != nil {
		t.Fatalf("after release: %v", err)
	}
	if err := again.Release(); err != nil {
		t.Fatal(err)
	}
}

// Await waits for the lock until its holder releases it or the context ends. With an empty holder
// it changes nothing in the file.
func TestSharedLockKeepsOutWhoWantsItAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	var shared []*durable.Lock
	for range 2 {
		lock, err := durable.Share(path, "one of two")
		if err != nil {
			t.Fatal(err)
		}
		shared = append(shared, lock)
	}
	for _, lock := range shared {
		if _, err := durable.Acquire(path, "alone"); !errors.Is(err, durable.ErrLocked) {
			t.Errorf("while it is shared: %v, want ErrLocked", err)
		}
		if err := lock.Release(); err != nil {
			t.Fatal(err)
		}
	}
	alone, err := durable.Acquire(path, "alone")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := durable.Share(path, "one of two"); !errors.Is(err, durable.ErrLocked) {
		t.Errorf("while a process has it alone: %v, want ErrLocked", err)
	}
	if err := alone.Release(); err != nil {
		t.Fatal(err)
	}
}

// A file is created once: whoever comes second leaves it as it is.
func TestCreateReplacesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for i, want := range []error{nil, fs.ErrExist} {
		if err := durable.Create(path, []byte{byte(i)}, 0o600); !errors.Is(err, want) {
			t.Errorf("attempt %d: %v, want %v", i+1, err, want)
		}
	}
	if content, err := os.ReadFile(path); err != nil || !bytes.Equal(content, []byte{0}) {
		t.Errorf("%v, %v: the first content was replaced", content, err)
	}
	onlyFile(t, path)
}

func TestAwaitWaitsForTheLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	lock, err := durable.Acquire(path, "the first")
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := durable.Await(ended, path, ""); !errors.Is(err, durable.ErrLocked) || !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v, want ErrLocked and Canceled", err)
	}
	released := make(chan error, 1)
	go func() { released <- lock.Release() }()
	second, err := durable.Await(t.Context(), path, "")
	if err := errors.Join(err, <-released); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || !strings.HasSuffix(string(text), ", the first\n") {
		t.Errorf("the file holds %q, error %v", text, err)
	}
	if err := second.Release(); err != nil {
		t.Fatal(err)
	}
}

// lockHolder is the variable that makes the test binary a process that holds a lock until it is
// killed.
const lockHolder = "PLUMBLINE_TEST_LOCK"

func TestMain(m *testing.M) {
	if path := os.Getenv(lockHolder); path != "" {
		holdLock(path)
	}
	os.Exit(m.Run())
}

func holdLock(path string) {
	if _, err := durable.Acquire(path, "a process that is killed"); err != nil {
		os.Exit(1)
	}
	if _, err := os.Stdout.WriteString("held\n"); err != nil {
		os.Exit(1)
	}
	select {}
}

func TestLockIsReleasedWhenItsProcessEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), lockHolder+"="+path)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 16)); err != nil {
		t.Fatalf("the holder printed nothing: %v", err)
	}
	if _, err := durable.Acquire(path, "too early"); !errors.Is(err, durable.ErrLocked) {
		t.Errorf("while the holder runs: %v, want ErrLocked", err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); err == nil {
		t.Error("the killed process ended without an error")
	}
	lock, err := durable.Acquire(path, "after the kill")
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
}

func TestSafeNameStaysInItsDirectory(t *testing.T) {
	for _, text := range []string{"", ".", "..", "../../etc/passwd", "a/b", "-rf", "a\x00b", `a\b`, strings.Repeat("x", 4096), "é", "é"} {
		checkSafe(t, text)
	}
	rapid.Check(t, func(t *rapid.T) { checkSafe(t, rapid.String().Draw(t, "text")) })
}

func checkSafe(t interface{ Errorf(string, ...any) }, text string) {
	name := durable.SafeName(text)
	unsafe := bytes.ContainsFunc([]byte(name), func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", r)
	})
	if unsafe || name == "" || len(name) > 80 || name[0] == '-' {
		t.Errorf("SafeName(%q) = %q", text, name)
	}
}

func TestSafeNamesOfDifferentTextsDiffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		if (a == b) != (durable.SafeName(a) == durable.SafeName(b)) {
			t.Errorf("%q and %q: %q, %q", a, b, durable.SafeName(a), durable.SafeName(b))
		}
	})
}
