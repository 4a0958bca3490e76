package tlog

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/aivs/anchor"
)

// An attacker who changes the files of an open log gets no signature of its key on a second
// history, and no invalid proofs.
func TestLogChangedDuringARun(t *testing.T) {
	flip := func(t *testing.T, dir string, stored int) {
		t.Helper()
		hashes := files(t, dir)[hashesName]
		hashes[stored*32] ^= 1
		place(t, dir, map[string][]byte{hashesName: hashes})
	}
	moved := func(t *testing.T, dir string, earlier map[string][]byte) {
		t.Helper()
		if err := errors.Join(os.Rename(dir, dir+".moved"), os.Mkdir(dir, 0o700)); err != nil {
			t.Fatal(err)
		}
		place(t, dir, earlier)
	}
	for name, c := range map[string]struct {
		change func(t *testing.T, dir string, earlier map[string][]byte)
		again  bool // append existing leaves instead of new ones
	}{
		"rolled back in place":        {change: func(t *testing.T, dir string, earlier map[string][]byte) { place(t, dir, earlier) }},
		"another directory, earlier":  {change: moved},
		"leaves cut":                  {change: func(t *testing.T, dir string, _ map[string][]byte) { place(t, dir, map[string][]byte{leavesName: nil}) }},
		"a node that the root is of":  {change: func(t *testing.T, dir string, _ map[string][]byte) { flip(t, dir, 14) }},
		"a node that proofs are made": {change: func(t *testing.T, dir string, _ map[string][]byte) { flip(t, dir, 6) }, again: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "log")
			l := open(t, dir)
			defer closeLog(t, l)
			appendTo(t, l, leavesOf(t, 0, 4))
			earlier := files(t, dir)
			appendTo(t, l, leavesOf(t, 4, 8))
			head, whole := l.Head(), files(t, dir)
			c.change(t, dir, earlier)
			leaves := leavesOf(t, 8, 12)
			if c.again {
				leaves = leavesOf(t, 4, 8)
			}
			proofs, err := l.Append(leaves...)
			if !errors.Is(err, ErrTampered) || proofs != nil || l.Head() != head {
				t.Fatalf("%d proofs, a head of %d leaves: %v", len(proofs), l.Head().Size, err)
			}
			if name == "another directory, earlier" {
				return // the log is no longer open
			}
			place(t, dir, whole)
			appendTo(t, l, leavesOf(t, 8, 12))
			if err := l.view.GoesOnFrom(&head); err != nil {
				t.Error(err)
			}
		})
	}
}

// A refused log keeps every byte: it opens again once its own checkpoint is restored.
func TestRefusedLogIsNotChanged(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	appendTo(t, l, leavesOf(t, 0, 4))
	earlier := files(t, dir)[checkpointName]
	appendTo(t, l, leavesOf(t, 4, 8))
	head, whole := l.Head(), files(t, dir)
	closeLog(t, l)
	place(t, dir, map[string][]byte{checkpointName: earlier})
	if _, err := OpenLog(dir, after(keyOf(2), keyOf(1)), &head); !errors.Is(err, ErrNotKept) {
		t.Fatal(err)
	}
	place(t, dir, map[string][]byte{checkpointName: whole[checkpointName]})
	if !maps.EqualFunc(files(t, dir), whole, slices.Equal) {
		t.Error("the files were changed")
	}
	l, err := OpenLog(dir, keyOf(1), &anchor.Checkpoint{Origin: head.Origin, Size: head.Size, Root: head.Root})
	if err != nil {
		t.Fatal(err)
	}
	closeLog(t, l)
}
