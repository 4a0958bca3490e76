package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Recording does not wait for an ingest that hangs; with a full spool traces are dropped, counted
// and told.
func TestRecorderDropsOnlyWhatTheSpoolCannotKeep(t *testing.T) {
	hangs := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hangs }))
	defer server.Close()
	defer close(hangs)
	dir := t.TempDir()
	r, h := record(t, server.URL, func(c *RecorderConfig) { c.Spool, c.SpoolBytes = dir, 100_000 })
	s := r.Session("s")
	for range 1000 {
		s.Record(Decision{Action: "x"})
	}
	closing, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if err := r.Close(closing); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("closed with %v", err)
	}
	stats := r.Stats()
	told := 0
	for _, e := range h.of(KindDropped) {
		told += e.Count
	}
	kept := 0
	files, _ := filepath.Glob(filepath.Join(dir, "a", "*", "*.jsonl"))
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		kept += bytes.Count(text, []byte("\n"))
	}
	if stats.Dropped == 0 || stats.Dropped != told || stats.Dropped+kept != 1000 || kept < 100 {
		t.Errorf("counted %+v, told %d, the spool has %d traces", stats, told, kept)
	}
	s.Record(Decision{Action: "x"})
	if r.Stats().Dropped != stats.Dropped+1 {
		t.Error("a trace after Close is not counted as dropped")
	}
	// What the next recorder takes over counts, so recorders that follow each other do not fill the disk.
	next, _ := record(t, server.URL, func(c *RecorderConfig) { c.Spool, c.SpoolBytes, c.Durable = dir, 100_000, true })
	next.Session("s").Record(Decision{Action: "x", Parameters: map[string]any{"more": strings.Repeat("x", 5000)}})
	if got := next.Stats(); got.Dropped != 1 {
		t.Errorf("the next recorder counted %+v", got)
	}
}

// What one recorder leaves, the next delivers, also what a dead process in another language left.
func TestRecorderTakesOverTheSpool(t *testing.T) {
	dir := t.TempDir()
	living, _ := record(t, nobody, func(c *RecorderConfig) { c.Spool = dir })
	living.Session("s-2").Record(Decision{Action: "x", TraceID: "living"})
	ended2, cancel2 := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel2()
	if err := living.Flush(ended2); err == nil { // it has a file now
		t.Error("the trace was delivered")
	}
	left, _ := record(t, nobody, func(c *RecorderConfig) { c.Spool = dir })
	left.Session("s-1").Record(Decision{Action: "x", TraceID: "left"})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := left.Close(ended); err == nil {
		t.Error("the trace was delivered")
	}
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	owner := filepath.Join(dir, "a", fmt.Sprintf("%d-abcd", dead.Process.Pid))
	for name, text := range map[string]string{
		"owner.json":             fmt.Sprintf(`{"host": %q, "pid": %d, "started": "boot:1"}`, host, dead.Process.Pid),
		"1-000000000001.jsonl":   `{"trace_id":"python"}` + "\n" + `{"end_session": {"agent_id": "a", "session_id": "s"}}` + "\n" + `{"trace_id":"bro`,
		"notes that are no file": "",
	} {
		if err := os.MkdirAll(owner, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(owner, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f := newFakeIngest(t)
	next, _ := record(t, f.URL, func(c *RecorderConfig) { c.Spool = dir })
	next.Session("s").Record(Decision{Action: "x", TraceID: "own"})
	flush(t, next)
	got := strings.Join(f.lines(), "\n")
	for id, want := range map[string]int{`"left"`: 1, `"python"`: 1, `"own"`: 1, `"living"`: 0, `"bro`: 0} {
		if n := strings.Count(got, `"trace_id":`+id); n != want {
			t.Errorf("%s was sent %d times, want %d: %s", id, n, want, got)
		}
	}
	if len(f.ends) != 1 {
		t.Errorf("ends: %q", f.ends)
	}
	if err := next.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if rest, _ := filepath.Glob(filepath.Join(dir, "a", "*")); len(rest) != 2 { // the living one, and that with notes
		t.Errorf("the spool has %q", rest)
	}
}

func TestOwners(t *testing.T) {
	dir := t.TempDir()
	write := func(o owner) {
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, ownerName), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if !alive(dir) {
		t.Error("a new directory without an owner counts as abandoned")
	}
	for name, c := range map[string]struct {
		owner owner
		want  bool
	}{
		"this process":           {owner{host, os.Getpid(), startOf(os.Getpid())}, true},
		"unknown start":          {owner{host, os.Getpid(), ""}, true},
		"its id was used again":  {owner{host, os.Getpid(), "other:1"}, false},
		"given up":               {owner{host, 0, ""}, false},
		"another host, recently": {owner{"other", 1, ""}, true},
	} {
		if write(c.owner); alive(dir) != c.want {
			t.Errorf("%s: alive is %t", name, !c.want)
		}
	}
	write(owner{"other", 1, ""})
	old := time.Now().Add(-abandonedAfter - time.Minute)
	if err := os.Chtimes(filepath.Join(dir, ownerName), old, old); err != nil {
		t.Fatal(err)
	}
	if alive(dir) {
		t.Error("an owner on another host that gives no sign counts as alive")
	}
	if start := startOf(os.Getpid()); start == "" || startOf(os.Getpid()) != start {
		t.Errorf("the start of this process is %q", start)
	}
}

// Without a spool that can be written, traces wait in memory and are delivered.
func TestRecorderWithoutASpool(t *testing.T) {
	f := newFakeIngest(t)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, spool := range []string{NoSpool, file} {
		r, h := record(t, f.URL, func(c *RecorderConfig) { c.Spool = spool })
		r.Session("s").Record(Decision{Action: "x"})
		flush(t, r)
		if got := r.Stats(); got.Accepted != 1 || (len(h.of(KindSpool)) > 0) != (spool == file) {
			t.Errorf("counted %+v, told %+v", got, h.errors)
		}
	}
	r, h := record(t, nobody, func(c *RecorderConfig) { c.Spool = NoSpool })
	r.Session("s").Record(Decision{Action: "x"})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Close(ended); err == nil || r.Stats().Dropped != 1 || r.Stats().Waiting != 0 || len(h.of(KindDropped)) != 1 {
		t.Errorf("closed with %v, counted %+v", err, r.Stats())
	}
}

// With Durable a trace is in a file when Record returns.
func TestDurable(t *testing.T) {
	dir := t.TempDir()
	r, _ := record(t, nobody, func(c *RecorderConfig) { c.Spool, c.Durable = dir, true })
	s := r.Session("s")
	for i := range 3 {
		id := s.Record(Decision{Action: "x"})
		files, _ := filepath.Glob(filepath.Join(dir, "a", "*", "*.jsonl"))
		all := ""
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all += string(text)
		}
		if !strings.Contains(all, id) || strings.Count(all, "\n") != i+1 {
			t.Fatalf("after trace %d the spool has %q", i, all)
		}
	}
}
