package tlog

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aivs/anchor"
	"github.com/plumbline/plumbline/aivs/anchor/anchortest"
)

var today = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func known(t *testing.T, witnesses ...*anchortest.Witness) (all []*anchor.Witness) {
	t.Helper()
	for _, w := range witnesses {
		parsed, err := anchor.ParseWitness(w.Key())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, parsed)
	}
	return all
}

// seenBy returns the names of the witnesses whose cosignatures the log publishes.
func seenBy(t *testing.T, signed []byte, witnesses []*anchor.Witness) (names string) {
	t.Helper()
	found, err := anchor.Cosignatures(signed, witnesses)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range found {
		names += c.Name + " "
	}
	return strings.TrimSpace(names)
}

// The log publishes the cosignatures with its checkpoint until it grows, also after a restart and
// under another key. Then it publishes them as the newest cosigned checkpoint.
func TestCosignaturesAreServed(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	appendTo(t, l, leavesOf(t, 0, 3))
	a, b := anchortest.NewWitness("a.example", 11), anchortest.NewWitness("b.example", 12)
	witnesses, three := known(t, a, b), l.Checkpoint()
	if err := l.Cosign(a.Cosign(three, today), witnesses, today); err != nil {
		t.Fatal(err)
	}
	if err := l.Cosign(b.Cosign(three, today), witnesses, today); err != nil { // this witness has not seen a's cosignature
		t.Fatal(err)
	}
	if err := l.Cosign(a.Cosign(three, today.Add(time.Minute)), witnesses, today); err != nil {
		t.Fatal(err)
	}
	if got := seenBy(t, l.Checkpoint(), witnesses); got != "b.example a.example" || !bytes.Equal(l.Checkpoint(), l.Cosigned()) {
		t.Errorf("seen by %q:\n%s", got, l.Checkpoint())
	}
	if n := bytes.Count(l.Checkpoint(), []byte("a.example")); n != 1 {
		t.Errorf("a's line is present %d times", n)
	}
	closeLog(t, l)
	key := after(keyOf(2), keyOf(1))
	l, err := OpenLog(dir, key)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { closeLog(t, l) }()
	if c, err := anchor.OpenCheckpoint(l.Checkpoint(), verifierOf(t, key)); err != nil || c.Size != 3 || seenBy(t, l.Checkpoint(), witnesses) != "b.example a.example" {
		t.Errorf("by the next key: %+v, %v", c, err)
	}
	appendTo(t, l, leavesOf(t, 3, 5))
	if got := seenBy(t, l.Checkpoint(), witnesses); got != "" || seenBy(t, l.Cosigned(), witnesses) != "b.example a.example" {
		t.Errorf("the head of five leaves is seen by %q", got)
	}
	five := l.Checkpoint()
	appendTo(t, l, leavesOf(t, 5, 6))
	if err := l.Cosign(b.Cosign(five, today), witnesses, today); err != nil { // on an earlier head
		t.Fatal(err)
	}
	if err := l.Cosign(a.Cosign(three, today), witnesses, today); err != nil { // older: nothing changes
		t.Fatal(err)
	}
	c, err := anchor.OpenCheckpoint(l.Cosigned(), verifierOf(t, key))
	if got := seenBy(t, l.Cosigned(), witnesses); err != nil || c.Size != 5 || got != "b.example" {
		t.Errorf("%+v is seen by %q, %v", c, got, err)
	}
}

func TestInvalidCosignaturesAreRefused(t *testing.T) {
	l, other := open(t, t.TempDir()), open(t, t.TempDir())
	defer closeLog(t, l)
	defer closeLog(t, other)
	appendTo(t, l, leavesOf(t, 0, 3))
	appendTo(t, other, leavesOf(t, 10, 12))
	fork := other.Checkpoint()
	appendTo(t, other, leavesOf(t, 12, 15))
	w := anchortest.NewWitness("a.example", 11)
	witnesses, head := known(t, w), l.Checkpoint()
	for name, c := range map[string]struct {
		signed []byte
		want   error
	}{
		"nothing":                         {nil, ErrNotCheckpoint},
		"no cosignature":                  {head, ErrNoWitness},
		"an unknown witness":              {anchortest.NewWitness("b.example", 12).Cosign(head, today), ErrNoWitness},
		"a key that bears another's name": {anchortest.NewWitness("a.example", 12).Cosign(head, today), ErrNoWitness},
		"a changed root":                  {w.Cosign(bytes.Replace(head, []byte("\n3\n"), []byte("\n4\n"), 1), today), ErrNotCheckpoint},
		"a cosignature of something else": {append(bytes.Clone(head), w.Cosign(fork, today)[len(fork):]...), ErrNoWitness},
		"a time to come":                  {w.Cosign(head, today.Add(time.Hour)), ErrNoWitness},
		"another history":                 {w.Cosign(fork, today), ErrNotKept},
		"a longer history":                {w.Cosign(other.Checkpoint(), today), ErrNotKept},
	} {
		if err := l.Cosign(c.signed, witnesses, today); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if l.Cosigned() != nil || !bytes.Equal(l.Checkpoint(), head) {
		t.Errorf("something was stored:\n%s", l.Cosigned())
	}
}

// A log that is not a continuation of the cosigned checkpoint is not opened.
func TestLogContinuesFromTheCosignedCheckpoint(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	appendTo(t, l, leavesOf(t, 0, 3))
	early := files(t, dir)
	appendTo(t, l, leavesOf(t, 3, 5))
	w := anchortest.NewWitness("a.example", 11)
	if err := l.Cosign(w.Cosign(l.Checkpoint(), today), known(t, w), today); err != nil {
		t.Fatal(err)
	}
	closeLog(t, l)
	place(t, dir, early)
	if _, err := OpenLog(dir, keyOf(1)); !errors.Is(err, ErrNotKept) {
		t.Errorf("rolled back: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, cosignedName), []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenLog(dir, keyOf(1)); !errors.Is(err, ErrTampered) {
		t.Errorf("changed: %v", err)
	}
}
