package destination

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// place is a destination in memory that fails on request.
type place struct {
	location string
	fault    error
	mu       sync.Mutex // several copies arrive at a time
	objects  map[string]string
}

func (p *place) Location() string            { return p.location }
func (p *place) Ready(context.Context) error { return p.fault }

func (p *place) Deliver(_ context.Context, name, _ string, content io.ReadSeeker) error {
	text, err := io.ReadAll(content)
	if err != nil || p.fault != nil {
		return errors.Join(err, p.fault)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if there, taken := p.objects[name]; taken && there != string(text) {
		return Taken(digest(there), digest(string(text)))
	}
	p.objects[name] = string(text)
	return nil
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// fixture is a running copier with its bundle directory and what it reported.
type fixture struct {
	*Copier
	*place
	waiting   int
	recording error
	recorded  chan Copy
	failures  chan struct{}
	log       bytes.Buffer // read it only after stop has returned
}

// open opens a copier with earlier files.
func (f *fixture) open(t *testing.T, root string, earlier ...string) {
	t.Helper()
	f.recorded, f.failures = make(chan Copy, 100), make(chan struct{}, 100)
	f.Copier = &Copier{
		To: f.place, Name: "place", Dir: filepath.Join(root, "copies"), Bundles: root, Log: slog.New(slog.NewTextHandler(&f.log, nil)),
		Record: func(_ context.Context, location string, copies []Copy) error {
			if location != f.location || f.recording != nil {
				return errors.Join(f.recording, errors.New(location))
			}
			for _, c := range copies {
				f.recorded <- c
			}
			return nil
		},
		Done: func(int) {}, Failed: func() { f.failures <- struct{}{} }, Waiting: func(n int) { f.waiting = n },
	}
	if err := f.Open(names(earlier)); err != nil {
		t.Fatal(err)
	}
}

func names(files []string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, file := range files {
			if !yield(file, nil) {
				return
			}
		}
	}
}

// run runs the copier until the test calls stop.
func (f *fixture) run(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func write(t *testing.T, root, name, text string) {
	t.Helper()
	path := filepath.Join(root, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func await[T any](t *testing.T, events <-chan T, what string) (got T) {
	t.Helper()
	select {
	case got = <-events:
	case <-time.After(time.Minute):
		t.Fatalf("%s did not happen within the time limit", what)
	}
	return got
}

func TestFileIsCopiedAndRecorded(t *testing.T) {
	root := t.TempDir()
	f := fixture{place: &place{location: "here", objects: map[string]string{}}}
	f.open(t, root)
	write(t, root, "a/x.tar.gz", "content")
	if err := f.Add(Copy{File: filepath.Join("a", "x.tar.gz"), SHA256: digest("content")}); err != nil {
		t.Fatal(err)
	}
	stop := f.run(t)
	c := await(t, f.recorded, "the record")
	stop()
	if c.SHA256 != digest("content") || c.Size != 7 || c.Delivered.IsZero() || f.objects["a/x.tar.gz"] != "content" {
		t.Errorf("recorded %+v, stored %v", c, f.objects)
	}
}

// Bytes that differ from those sealed are not copied, and nothing is overwritten. Both items stay
// in the list as stuck, while others are delivered.
func TestChangedAndMissingFilesAreNotCopied(t *testing.T) {
	root := t.TempDir()
	f := fixture{place: &place{location: "here", objects: map[string]string{"taken": "other"}}}
	f.open(t, root)
	for _, name := range []string{"changed", "taken", "good"} {
		write(t, root, name, name)
	}
	err := f.Add(Copy{File: "changed", SHA256: digest("as sealed")}, Copy{File: "gone"}, Copy{File: "taken"}, Copy{File: "good"})
	if err != nil {
		t.Fatal(err)
	}
	stop := f.run(t)
	c := await(t, f.recorded, "the one that can be copied")
	for range 3 {
		await(t, f.failures, "a refusal")
	}
	stop()
	if c.File != "good" || len(f.objects) != 2 || f.objects["taken"] != "other" {
		t.Errorf("recorded %+v, stored %v", c, f.objects)
	}
	for _, want := range []string{"changed was changed since it was sealed", "gone: no such file", digest("other")} {
		if !strings.Contains(f.log.String(), want) {
			t.Errorf("the log does not contain %q:\n%s", want, &f.log)
		}
	}
}

// A copy that could not be recorded is not done.
func TestFailedRecordIsRetried(t *testing.T) {
	root := t.TempDir()
	f := fixture{place: &place{location: "here", objects: map[string]string{}}, recording: errors.New("the database is away")}
	f.open(t, root)
	write(t, root, "x", "content")
	if err := f.Add(Copy{File: "x"}); err != nil {
		t.Fatal(err)
	}
	stop := f.run(t)
	await(t, f.failures, "the failure")
	stop()
	f.recording = nil
	f.open(t, root)
	if f.waiting != 1 {
		t.Errorf("%d copies wait", f.waiting)
	}
	stop = f.run(t)
	await(t, f.recorded, "the record")
	stop()
}

// A destination that is new, or was not configured for a while, receives what was sealed before.
func TestEarlierFilesAreListedOnce(t *testing.T) {
	root, earlier := t.TempDir(), []string{"a", "b"}
	f := fixture{place: &place{location: "here", fault: errors.New("away")}}
	f.open(t, root)
	for _, step := range []struct {
		change  func() error
		waiting int
	}{
		{func() error { return nil }, 0},
		{func() error { f.location = "there"; return nil }, 2},
		{func() error { return os.RemoveAll(filepath.Join(root, "copies")) }, 2},
		{func() error { emptied(t, filepath.Join(root, "copies")); return nil }, 0},
		{func() error { return Forget(filepath.Join(root, "copies")) }, 2},
		{func() error { return Forget(filepath.Join(root, "nowhere")) }, 2},
	} {
		if err := step.change(); err != nil {
			t.Fatal(err)
		}
		f.open(t, root, earlier...)
		if f.waiting != step.waiting {
			t.Errorf("%d copies wait, want %d", f.waiting, step.waiting)
		}
	}
}

// emptied removes everything from a list except the name of its destination.
func emptied(t *testing.T, dir string) {
	t.Helper()
	lists, err := filepath.Glob(filepath.Join(dir, "*.waiting"))
	if err != nil || len(lists) != 1 {
		t.Fatalf("lists %v, %v", lists, err)
	}
	if err := os.Remove(lists[0]); err != nil {
		t.Fatal(err)
	}
}

// Many earlier files are added in several list files. An error while finding them is returned.
func TestManyEarlierFiles(t *testing.T) {
	var f fixture
	f.place = &place{location: "here"}
	root, many := t.TempDir(), make([]string, 2*together+1)
	for i := range many {
		many[i] = strings.Repeat("x", i+1)
	}
	f.open(t, root, many...)
	if lists, err := filepath.Glob(filepath.Join(root, "copies", "*.waiting")); err != nil || len(lists) != 3 || f.waiting != len(many) {
		t.Errorf("%d copies wait in %d lists, %v", f.waiting, len(lists), err)
	}
	f.location = "there"
	f.To = f.place
	fault := errors.New("the directory cannot be read")
	if err := f.Open(func(yield func(string, error) bool) { yield("", fault) }); !errors.Is(err, fault) {
		t.Error(err)
	}
	if text, err := os.ReadFile(filepath.Join(root, "copies", locationName)); err != nil || !slices.Equal(text, []byte("here")) {
		t.Errorf("noted as complete for %q, %v", text, err)
	}
}
