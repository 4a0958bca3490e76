package opledger_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/opledger"
)

var streamMade = time.Date(2026, 1, 1, 0, 0, 0, 7, time.UTC)

// events returns events with the numbers from to to, a minute apart.
func events(from, to int) []opledger.Event {
	var all []opledger.Event
	for n := from; n <= to; n++ {
		all = append(all, opledger.Event{Type: ledger.Claim, ID: fmt.Sprint(n), Data: fmt.Appendf(nil, `{"n":%d}`, n),
			Stream: streamMade, Sequence: uint64(n), Received: streamMade.Add(time.Duration(n) * time.Minute)})
	}
	return all
}

var small = ledger.Rotation{Entries: 5, Age: 24 * time.Hour}

func openBook(t rapid.TB, dir string) *opledger.Book {
	t.Helper()
	book, err := opledger.Open(dir, "operator", small)
	if err != nil {
		t.Fatal(err)
	}
	return book
}

func appendAll(t rapid.TB, book *opledger.Book, all []opledger.Event) []opledger.Placed {
	t.Helper()
	placed, err := book.Append(all)
	if err != nil {
		t.Fatal(err)
	}
	return placed
}

func closeBook(t rapid.TB, book *opledger.Book) {
	t.Helper()
	if err := book.Close(); err != nil {
		t.Fatal(err)
	}
}

// walk checks every file of a ledger as a chain and returns the numbers of its events.
func walk(t rapid.TB, dir string) (numbers []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "ledger-*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var before *ledger.Summary
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		summary, err := ledger.Validate(bytes.NewReader(data), before)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if summary.Entries > small.Entries {
			t.Errorf("%s: %d entries", path, summary.Entries)
		}
		before = &summary
		for line := range strings.Lines(string(data)) {
			if _, rest, ok := strings.Cut(line, `"event":{"n":`); ok {
				number, _, _ := strings.Cut(rest, "}")
				numbers = append(numbers, number)
			}
		}
	}
	return numbers
}

func wantNumbers(t rapid.TB, dir string, most int) {
	t.Helper()
	got := walk(t, dir)
	if len(got) != most {
		t.Fatalf("%d events in the files, want %d: %v", len(got), most, got)
	}
	for i, number := range got {
		if number != fmt.Sprint(i+1) {
			t.Fatalf("event %d is %s", i+1, number)
		}
	}
}

func TestEventsAreChainedOnceAndInOrder(t *testing.T) {
	dir := t.TempDir()
	book := openBook(t, dir)
	if placed := appendAll(t, book, events(1, 3)); len(placed) != 4 || placed[0].Type != ledger.Genesis || placed[0].File != 1 || placed[3].Seq != 3 || placed[3].File != 1 {
		t.Errorf("%+v", placed)
	}
	if placed := appendAll(t, book, events(2, 12)); len(placed) != 9+2 {
		t.Errorf("%d entries, want nine events and two beginnings", len(placed))
	}
	closeBook(t, book)
	wantNumbers(t, dir, 12)
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("python3", append([]string{"-I", filepath.Join(dir, "verify_ledger.py")}, files...)...).CombinedOutput(); err != nil {
		t.Errorf("the verifier next to the files: %v\n%s", err, out)
	}
	again := openBook(t, dir)
	if placed := appendAll(t, again, events(1, 12)); len(placed) != 0 {
		t.Errorf("after a restart %d events are chained again", len(placed))
	}
	if tail := again.Tail(); len(tail) != 5+5 || tail[0].Type != ledger.Genesis || tail[0].File != 2 || !tail[1].At.Equal(events(5, 5)[0].Received) {
		t.Errorf("the last two files hold %d entries, the first %s of file %d", len(tail), tail[0].Type, tail[0].File)
	}
	appendAll(t, again, events(13, 13))
	closeBook(t, again)
	wantNumbers(t, dir, 13)
}

func TestEventsOfANewStreamAreNew(t *testing.T) {
	dir := t.TempDir()
	book := openBook(t, dir)
	appendAll(t, book, events(1, 2))
	recreated := events(1, 1)
	recreated[0].Stream = streamMade.Add(time.Hour)
	if placed := appendAll(t, book, recreated); len(placed) != 1 {
		t.Errorf("%d entries", len(placed))
	}
	closeBook(t, book)
}

func TestCompleteFilesAreReadOnly(t *testing.T) {
	dir := t.TempDir()
	book := openBook(t, dir)
	appendAll(t, book, events(1, 5))
	closeBook(t, book)
	for name, want := range map[string]os.FileMode{"ledger-000001.jsonl": 0o440, "ledger-000002.jsonl": 0o640} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, error %v", name, info.Mode(), err)
		}
	}
}

func TestOldFilesAreRotated(t *testing.T) {
	dir := t.TempDir()
	book := openBook(t, dir)
	appendAll(t, book, events(1, 1))
	late := events(2, 2)
	late[0].Received = late[0].Received.Add(small.Age)
	if placed := appendAll(t, book, late); len(placed) != 2 || placed[1].File != 2 {
		t.Errorf("%+v", placed)
	}
	closeBook(t, book)
}

// TestCrashAtAnyByte truncates the last file wherever a crash could have, and chains again the
// events that were not acknowledged.
func TestCrashAtAnyByte(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "ledger")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		acknowledged := rapid.IntRange(0, 11).Draw(t, "acknowledged")
		total := acknowledged + rapid.IntRange(0, 4).Draw(t, "more")
		book := openBook(t, dir)
		appendAll(t, book, events(1, acknowledged))
		held := lastSize(t, dir)
		appendAll(t, book, events(acknowledged+1, total))
		closeBook(t, book)
		path, size := lastFile(t, dir)
		if path != "" && held.path == path { // the bytes before held.size were acknowledged
			if err := os.Truncate(path, held.size+rapid.Int64Range(0, size-held.size).Draw(t, "cut")); err != nil {
				t.Fatal(err)
			}
		}
		again := openBook(t, dir)
		appendAll(t, again, events(acknowledged+1, total))
		closeBook(t, again)
		wantNumbers(t, dir, total)
	})
}

// TestCrashWhileRotating puts a directory into the state of each step of a rotation. From each
// state the next start continues, and every file but the last is complete and read-only.
func TestCrashWhileRotating(t *testing.T) {
	const first, second, full = "ledger-000001.jsonl", "ledger-000002.jsonl", 4 // events in one file
	for name, crash := range map[string]func(t *testing.T, dir string){
		"before the next file": func(t *testing.T, dir string) { remove(t, dir, second) },
		"while it is staged": func(t *testing.T, dir string) {
			if err := os.Rename(filepath.Join(dir, second), filepath.Join(dir, "."+second+".123")); err != nil {
				t.Fatal(err)
			}
		},
		"before the one before is complete": func(t *testing.T, dir string) { cutToGenesis(t, filepath.Join(dir, second)) },
		"before the first event": func(t *testing.T, dir string) {
			cutToGenesis(t, filepath.Join(dir, second))
			chmod(t, filepath.Join(dir, first), 0o440)
		},
		"after": func(*testing.T, string) {},
	} {
		dir := t.TempDir()
		book := openBook(t, dir)
		appendAll(t, book, events(1, full+1))
		closeBook(t, book)
		chmod(t, filepath.Join(dir, first), 0o640)
		crash(t, dir)
		again := openBook(t, dir)
		if covered := again.Position().Sequence; covered != full && name != "after" {
			t.Errorf("%s: %d events are chained, want %d", name, covered, full)
		}
		appendAll(t, again, events(1, 2*full+1))
		closeBook(t, again)
		wantNumbers(t, dir, 2*full+1)
		for file, want := range map[string]os.FileMode{first: 0o440, second: 0o440, "ledger-000003.jsonl": 0o640} {
			if info, err := os.Stat(filepath.Join(dir, file)); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: %s is %v, error %v", name, file, info.Mode(), err)
			}
		}
	}
}

// A loss of power may leave a file that was never on the disk: empty, or zero bytes. Nothing in
// it was acknowledged, and it is begun again.
func TestBlankFileIsReplaced(t *testing.T) {
	const full = 4 // events in one file
	for _, left := range []string{"", strings.Repeat("\x00", 300)} {
		for files, acknowledged := range []int{0, full} {
			dir := t.TempDir()
			book := openBook(t, dir)
			appendAll(t, book, events(1, acknowledged+1))
			closeBook(t, book)
			path, _ := lastFile(t, dir)
			if err := os.WriteFile(path, []byte(left), 0o600); err != nil {
				t.Fatal(err)
			}
			again := openBook(t, dir)
			if covered := again.Position().Sequence; covered != uint64(acknowledged) {
				t.Errorf("%d files before one with %q: %d events are chained, want %d", files, left, covered, acknowledged)
			}
			appendAll(t, again, events(1, full+2))
			closeBook(t, again)
			wantNumbers(t, dir, full+2)
		}
	}
}

// A file that ends within its first entry may have been truncated by somebody. The error names
// the file and the remedy, and the file stays.
func TestFileTruncatedInItsFirstEntryIsNamed(t *testing.T) {
	dir := t.TempDir()
	book := openBook(t, dir)
	appendAll(t, book, events(1, 1))
	closeBook(t, book)
	path, _ := lastFile(t, dir)
	if err := os.Truncate(path, 20); err != nil {
		t.Fatal(err)
	}
	_, err := opledger.Open(dir, "operator", small)
	if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "remove it") || !strings.Contains(err.Error(), "backup") {
		t.Errorf("the error is %v", err)
	}
	if _, size := lastFile(t, dir); size != 20 {
		t.Errorf("the file has %d bytes now", size)
	}
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// cutToGenesis truncates a file after its first entry.
func cutToGenesis(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.Truncate(path, int64(bytes.IndexByte(data, '\n')+1))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// An entry added to a complete file breaks the next file's continuation: Open refuses the ledger.
func TestCompleteFileThatGrewIsRefused(t *testing.T) {
	dir := t.TempDir()
	book := openBook(t, dir)
	appendAll(t, book, events(1, 5))
	closeBook(t, book)
	path := filepath.Join(dir, "ledger-000001.jsonl")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	last, err := ledger.ParseLine(lines[len(lines)-1])
	if err != nil {
		t.Fatal(err)
	}
	grown := ledger.Resume(last)
	entry, err := grown.Append(ledger.Claim, last.Data)
	if err != nil {
		t.Fatal(err)
	}
	chmod(t, path, 0o640)
	if err := os.WriteFile(path, entry.AppendLine(data), 0o600); err != nil {
		t.Fatal(err)
	}
	var fault *ledger.Fault
	if _, err := opledger.Open(dir, "operator", small); !errors.As(err, &fault) || fault.Kind != ledger.FaultContinuation || fault.Seq != 0 {
		t.Errorf("%v, want a fault of continuation", err)
	}
}

type sized struct {
	path string
	size int64
}

func lastSize(t rapid.TB, dir string) sized {
	path, size := lastFile(t, dir)
	return sized{path, size}
}

func lastFile(t rapid.TB, dir string) (path string, size int64) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "ledger-*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		return "", 0
	}
	info, err := os.Stat(files[len(files)-1])
	if err != nil {
		t.Fatal(err)
	}
	return files[len(files)-1], info.Size()
}

func TestChangedLedgerIsRefused(t *testing.T) {
	for name, spoil := range map[string]func(data []byte) []byte{
		"event changed": func(data []byte) []byte { return bytes.Replace(data, []byte(`{"n":7}`), []byte(`{"n":8}`), 1) },
		"line lost":     func(data []byte) []byte { return data[bytes.IndexByte(data, '\n')+1:] },
		"line added":    func(data []byte) []byte { return append(data, "{}\n"...) },
	} {
		dir := t.TempDir()
		book := openBook(t, dir)
		appendAll(t, book, events(1, 7))
		closeBook(t, book)
		path, _ := lastFile(t, dir)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, spoil(data), 0o600); err != nil {
			t.Fatal(err)
		}
		var fault *ledger.Fault
		if _, err := opledger.Open(dir, "operator", small); !errors.As(err, &fault) || !strings.Contains(err.Error(), filepath.Base(path)) ||
			!strings.Contains(err.Error(), "move the directory away and keep it, and start again: the ledger is written again from stream LEDGER") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestInvalidEventsAreRefused(t *testing.T) {
	for name, e := range map[string]opledger.Event{
		"type":    {Type: "NOTE", Data: []byte("{}")},
		"genesis": {Type: ledger.Genesis, Data: []byte("{}")},
		"data":    {Type: ledger.Claim, Data: []byte("{")},
		"number":  {Type: ledger.Claim, Data: []byte(`{"n":9007199254740993}`)},
	} {
		if err := e.Check(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	good := events(1, 1)[0]
	if err := good.Check(); err != nil {
		t.Error(err)
	}
}
