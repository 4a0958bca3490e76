package tlog

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"github.com/plumbline/plumbline/aivs/anchor"
	"github.com/plumbline/plumbline/pipeline/durable"
)

func keyOf(seed byte) LogKey {
	return LogKey{Origin: "example.org/bundles", Private: ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))}
}

// consistent checks that a log is a continuation of a signed checkpoint.
func consistent(v *View, signed []byte) error {
	older, err := anchor.OpenCheckpointBy(signed, v.keys)
	if err != nil {
		return err
	}
	return v.GoesOnFrom(older)
}

func verifierOf(t testing.TB, key LogKey) note.Verifier {
	t.Helper()
	keys, err := key.open()
	if err != nil {
		t.Fatal(err)
	}
	return keys.verifiers[0]
}

func open(t testing.TB, dir string) *Log {
	t.Helper()
	l, err := OpenLog(dir, keyOf(1))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func closeLog(t testing.TB, l *Log) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// leavesOf returns the leaves numbered from to to-1.
func leavesOf(t testing.TB, from, to int) [][]byte {
	t.Helper()
	var leaves [][]byte
	for i := from; i < to; i++ {
		leaf, err := anchor.Leaf(fmt.Sprintf("session %d", i), fmt.Sprintf("%064x", i))
		if err != nil {
			t.Fatal(err)
		}
		leaves = append(leaves, leaf)
	}
	return leaves
}

func appendTo(t testing.TB, l *Log, leaves [][]byte) []*anchor.Proof {
	t.Helper()
	proofs, err := l.Append(leaves...)
	if err != nil {
		t.Fatal(err)
	}
	return proofs
}

func TestThousandLeaves(t *testing.T) {
	dir, key := t.TempDir(), verifierOf(t, keyOf(1))
	var early [][]byte // checkpoints of smaller sizes
	for from := 0; from < 1000; from += 50 {
		l := open(t, dir) // open again each time: only the state on disk counts
		leaves := leavesOf(t, from, from+50)
		for i, proof := range appendTo(t, l, leaves) {
			c, err := proof.Verify(leaves[i], key)
			if err != nil || proof.Index != int64(from+i) || c.Size != int64(from+50) {
				t.Fatalf("leaf %d: at %d of %+v: %v", from+i, proof.Index, c, err)
			}
		}
		early = append(early, l.Checkpoint())
		closeLog(t, l)
	}
	view, err := OpenView(dir, key)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = view.Close() }()
	if err := view.Check(); err != nil || view.Size() != 1000 {
		t.Errorf("%d leaves: %v", view.Size(), err)
	}
	for i, signed := range early {
		if err := consistent(view, signed); err != nil {
			t.Errorf("checkpoint %d: %v", i, err)
		}
	}
	n := 0
	for b, err := range view.Bundles() {
		if err != nil || b.SessionID != fmt.Sprintf("session %d", n) || b.SHA256 != fmt.Sprintf("%064x", n) {
			t.Fatalf("leaf %d: %+v, %v", n, b, err)
		}
		n++
	}
}

func TestAppendIsIdempotent(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	first := appendTo(t, l, leavesOf(t, 0, 10))
	head := l.Checkpoint()
	again := appendTo(t, l, leavesOf(t, 0, 10))
	twice := appendTo(t, l, append(leavesOf(t, 3, 4), append(leavesOf(t, 10, 11), leavesOf(t, 10, 11)...)...))
	closeLog(t, l)
	l = open(t, dir)
	defer closeLog(t, l)
	reopened := appendTo(t, l, leavesOf(t, 0, 11))
	for i := range 10 {
		if again[i].Index != first[i].Index || reopened[i].Index != first[i].Index || !bytes.Equal(again[i].Checkpoint, head) {
			t.Errorf("leaf %d is at %d, %d and %d", i, first[i].Index, again[i].Index, reopened[i].Index)
		}
	}
	if twice[0].Index != 3 || twice[1].Index != 10 || twice[2].Index != 10 || l.view.Size() != 11 {
		t.Errorf("at %d, %d, %d of %d", twice[0].Index, twice[1].Index, twice[2].Index, l.view.Size())
	}
}

func TestInvalidLeafIsNotAppended(t *testing.T) {
	l := open(t, t.TempDir())
	defer closeLog(t, l)
	if _, err := l.Append(leavesOf(t, 0, 1)[0], []byte("nothing\n")); err == nil || l.view.Size() != 0 {
		t.Errorf("%d leaves: %v", l.view.Size(), err)
	}
}

// After a crash before the checkpoint, at any place in the files, the log is unchanged, and the
// same append then gives the same proof.
func TestCrashWhileAppending(t *testing.T) {
	source := t.TempDir()
	l := open(t, source)
	appendTo(t, l, leavesOf(t, 0, 7))
	before := files(t, source)
	want := appendTo(t, l, leavesOf(t, 7, 10))
	closeLog(t, l)
	after := files(t, source)
	for _, cut := range []int{0, 1, 20, 40, 90} {
		torn := map[string][]byte{checkpointName: before[checkpointName]}
		for _, name := range []string{leavesName, hashesName} {
			torn[name] = after[name][:min(len(after[name]), len(before[name])+cut)]
		}
		dir := t.TempDir()
		place(t, dir, torn)
		l := open(t, dir)
		if l.view.Size() != 7 {
			t.Errorf("cut %d: %d leaves", cut, l.view.Size())
		}
		got := appendTo(t, l, leavesOf(t, 7, 10))
		closeLog(t, l)
		for i := range want {
			if !bytes.Equal(got[i].Text(), want[i].Text()) {
				t.Errorf("cut %d: another proof of leaf %d", cut, 7+i)
			}
		}
		if !bytes.Equal(files(t, dir)[leavesName], after[leavesName]) {
			t.Errorf("cut %d: other leaves", cut)
		}
	}
}

// After a checkpoint could not be written, the next append writes it first.
func TestFailedCheckpoint(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	appendTo(t, l, leavesOf(t, 0, 3))
	checkpoint := filepath.Join(dir, checkpointName)
	if err := errors.Join(os.Remove(checkpoint), os.MkdirAll(filepath.Join(checkpoint, "in the way"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(leavesOf(t, 3, 6)...); err == nil {
		t.Fatal("appended without a checkpoint")
	}
	if err := os.RemoveAll(checkpoint); err != nil {
		t.Fatal(err)
	}
	appendTo(t, l, leavesOf(t, 6, 7))
	closeLog(t, l)
	l = open(t, dir)
	defer closeLog(t, l)
	if l.view.Size() != 4 || l.unsure {
		t.Errorf("%d leaves", l.view.Size())
	}
}

// files returns the contents of a log's files.
func files(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	for _, name := range []string{leavesName, hashesName, checkpointName} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		found[name] = text
	}
	return found
}

func place(t testing.TB, dir string, files map[string][]byte) {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTamperingIsFound(t *testing.T) {
	source := t.TempDir()
	l := open(t, source)
	appendTo(t, l, leavesOf(t, 0, 20))
	closeLog(t, l)
	whole := files(t, source)
	flip := func(text []byte, i int) []byte {
		text = slices.Clone(text)
		text[i] ^= 1
		return text
	}
	without := func(n int) []byte {
		leaves := leavesOf(t, 0, 20)
		return bytes.Join(slices.Delete(leaves, n, n+1), nil)
	}
	cases := map[string]map[string][]byte{
		"leaves cut":         {leavesName: whole[leavesName][:len(whole[leavesName])-1]},
		"leaf removed":       {leavesName: without(5)},
		"leaf changed":       {leavesName: flip(whole[leavesName], 30)},
		"hashes cut":         {hashesName: whole[hashesName][:len(whole[hashesName])-32]},
		"leaf hash changed":  {hashesName: flip(whole[hashesName], 0)},
		"node hash changed":  {hashesName: flip(whole[hashesName], 2*32)},
		"checkpoint changed": {checkpointName: flip(whole[checkpointName], len("example.org/bundles\n"))},
		"checkpoint emptied": {checkpointName: nil},
	}
	for name, changed := range cases {
		dir := t.TempDir()
		place(t, dir, whole)
		place(t, dir, changed)
		if l, err := OpenLog(dir, keyOf(1)); err == nil {
			t.Errorf("%s: it was opened with %d leaves", name, l.view.Size())
			closeLog(t, l)
		} else if !errors.Is(err, ErrTampered) {
			t.Errorf("%s: %v", name, err)
		}
		if v, err := OpenView(dir, verifierOf(t, keyOf(1))); err == nil {
			if err := errors.Join(v.Check(), v.Close()); !errors.Is(err, ErrTampered) {
				t.Errorf("%s: a view finds %v", name, err)
			}
		}
	}
	for name := range whole {
		dir := t.TempDir()
		place(t, dir, whole)
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenLog(dir, keyOf(1)); !errors.Is(err, ErrTampered) {
			t.Errorf("%s is gone: %v", name, err)
		}
	}
}

// Any checkpoint that was published shows that an operator restored an earlier log, or wrote
// another one with the same key.
func TestRolledBackAndRewrittenLogs(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	appendTo(t, l, leavesOf(t, 0, 50))
	earlier := files(t, dir)
	given := appendTo(t, l, leavesOf(t, 50, 100))[0].Checkpoint
	closeLog(t, l)
	for name, c := range map[string]struct {
		grow [][]byte
		want string
	}{
		"rolled back":               {nil, "rolled back: it had 100 leaves and has 50"},
		"rolled back, grown less":   {leavesOf(t, 200, 230), "rolled back: it had 100 leaves and has 80"},
		"rewritten, as long":        {leavesOf(t, 200, 250), "two roots"},
		"rewritten, longer":         {leavesOf(t, 200, 300), "rewritten"},
		"a leaf put in between":     {append(leavesOf(t, 300, 301), leavesOf(t, 50, 120)...), "rewritten"},
		"the same leaves, and more": {leavesOf(t, 50, 120), ""},
	} {
		dir := t.TempDir()
		place(t, dir, earlier)
		l := open(t, dir)
		if len(c.grow) > 0 {
			appendTo(t, l, c.grow)
		}
		err := consistent(&l.view, given)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		closeLog(t, l)
	}
}

func TestOneWriterOnly(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	defer closeLog(t, l)
	if _, err := OpenLog(dir, keyOf(1)); !errors.Is(err, durable.ErrLocked) {
		t.Errorf("a second one: %v", err)
	}
	appendTo(t, l, leavesOf(t, 0, 3))
	v, err := OpenView(dir, verifierOf(t, keyOf(1)))
	if err != nil {
		t.Fatal(err)
	}
	appendTo(t, l, leavesOf(t, 3, 9)) // while the view is open
	if err := errors.Join(v.Check(), v.Close()); err != nil || v.Size() != 3 {
		t.Errorf("a view of %d leaves: %v", v.Size(), err)
	}
}

// The log continues under a new key; signatures of the previous key stay valid.
func TestLogKeyIsRotated(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	old := appendTo(t, l, leavesOf(t, 0, 3))[0] // a proof by the first key
	closeLog(t, l)
	if _, err := OpenLog(dir, keyOf(2)); err == nil {
		t.Error("opened with an unknown key")
	}
	key := after(keyOf(2), keyOf(1))
	l, err := OpenLog(dir, key)
	if err != nil {
		t.Fatal(err)
	}
	defer closeLog(t, l)
	goesOn(t, l, key, old, 3)
	next := after(keyOf(3), key)
	for range 2 { // the second time it is the key in use
		if err := l.Use(next); err != nil {
			t.Fatal(err)
		}
	}
	goesOn(t, l, next, old, 4)
	if _, err := old.Verify(leavesOf(t, 0, 1)[0], verifierOf(t, keyOf(1))); err != nil {
		t.Errorf("an earlier proof, by the key of its time: %v", err)
	}
	if _, err := old.Verify(leavesOf(t, 0, 1)[0], verifierOf(t, next)); err == nil {
		t.Error("an earlier proof verifies with a key that did not sign it")
	}
}

// after returns a key whose earlier keys include another LogKey's.
func after(key, before LogKey) LogKey {
	key.Earlier = append([]ed25519.PublicKey{before.Private.Public().(ed25519.PublicKey)}, before.Earlier...)
	return key
}

// goesOn checks that the key has signed the head, that the next leaf's proof is by the key, and
// that the log still contains what it contained at an older proof.
func goesOn(t *testing.T, l *Log, key LogKey, old *anchor.Proof, size int) {
	t.Helper()
	head, err := anchor.OpenCheckpoint(l.Checkpoint(), verifierOf(t, key))
	if err != nil || head.Size != int64(size) {
		t.Errorf("the head is %+v, %v", head, err)
	}
	leaves := leavesOf(t, size, size+1)
	if _, err := appendTo(t, l, leaves)[0].Verify(leaves[0], verifierOf(t, key)); err != nil {
		t.Error(err)
	}
	if err := consistent(&l.view, old.Checkpoint); err != nil {
		t.Error(err)
	}
}

func TestViewOfAMissingLog(t *testing.T) {
	if _, err := OpenView(t.TempDir(), verifierOf(t, keyOf(1))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("of an empty directory: %v", err)
	}
}
