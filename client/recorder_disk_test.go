//go:build unix

package client

import (
	"bytes"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const diskIsFull = "PLUMBLINE_TEST_FULL_DISK"

// A disk that fills costs nothing that is on it, and takes no more memory than it may. The test runs in
// a process of its own, because its files may have 4 KiB only.
func TestADiskThatFills(t *testing.T) {
	if os.Getenv(diskIsFull) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestADiskThatFills$")
		cmd.Env = append(os.Environ(), diskIsFull+"=1")
		if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("PASS")) {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	dir := t.TempDir()
	r, h := record(t, nobody, func(c *RecorderConfig) { c.Spool, c.Durable = dir, true })
	s := r.Session("s")
	kept := s.Record(Decision{Action: "x"})
	files, err := filepath.Glob(filepath.Join(dir, "a", "*", "*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the spool has %q, error %v", files, err)
	}
	signal.Ignore(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 4096, Max: 4096}); err != nil {
		t.Fatal(err)
	}
	large := strings.Repeat("x", 120<<10)
	for range 40 { // 600 KiB each, of 16 MiB
		s.Record(Decision{Action: "x", Parameters: map[string]any{"a": large, "b": large, "c": large, "d": large, "e": large}})
	}
	text, err := os.ReadFile(files[0])
	if err != nil || !strings.Contains(string(text), kept) || bytes.Count(text, []byte("\n")) != 1 {
		t.Errorf("the file has %.2000q, error %v", text, err)
	}
	if stats := r.Stats(); stats.Dropped < 12 || stats.Dropped > 16 || len(h.of(KindSpool)) == 0 {
		t.Errorf("counted %+v, told %+v", stats, h.errors)
	}
}

// A file that cannot be read now waits. Nothing of it is dropped.
func TestAFileThatCannotBeRead(t *testing.T) {
	told := make(chan *RecordError, 1)
	r, _ := record(t, nobody, func(c *RecorderConfig) { c.OnError = func(e *RecordError) { told <- e } })
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	r.batches = append(r.batches, &batch{path: filepath.Join(file, "below it"), items: 1, traces: 1, born: time.Now()})
	r.announce()
	r.mu.Unlock()
	if e := <-told; e.Kind != KindSpool || r.Stats().Dropped != 0 {
		t.Errorf("told %+v, counted %+v", e, r.Stats())
	}
}
