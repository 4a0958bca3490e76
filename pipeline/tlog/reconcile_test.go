package tlog

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/aivs/anchor"
)

// logged writes bundles below a directory, appends them to a log, and writes the proof next to
// each.
func logged(t *testing.T, l *Log, dir string, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		path := filepath.Join(dir, fmt.Sprintf("%d.tar.gz", i))
		if err := os.WriteFile(path, fmt.Appendf(nil, "bundle %d", i), 0o600); err != nil {
			t.Fatal(err)
		}
		leaf, err := anchor.Leaf(fmt.Sprint("s", i), fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "bundle %d", i))))
		if err != nil {
			t.Fatal(err)
		}
		if err := PlaceProof(path, appendTo(t, l, [][]byte{leaf})[0]); err != nil {
			t.Fatal(err)
		}
	}
}

// found returns the bundles of a directory.
func found(t *testing.T, dir string) (all []Found) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, Found{filepath.Base(path), fmt.Sprintf("%x", sha256.Sum256(data))})
	}
	return all
}

func reconcile(t *testing.T, log, bundles string) *Reconciliation {
	t.Helper()
	v, err := OpenView(log, verifierOf(t, keyOf(1)))
	if err != nil {
		t.Fatal(err)
	}
	r, err := v.Reconcile(bundles, found(t, bundles))
	if err = errors.Join(err, v.Close()); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *Reconciliation) clean() bool {
	return r.Changed == nil && len(r.Missing)+len(r.Unlogged)+len(r.Unproven)+len(r.Bad) == 0
}

func TestReconcile(t *testing.T) {
	log, bundles := t.TempDir(), t.TempDir()
	l := open(t, log)
	logged(t, l, bundles, 0, 5)
	earlier := files(t, log)
	logged(t, l, bundles, 5, 8)
	closeLog(t, l)
	if r := reconcile(t, log, bundles); r.Leaves != 8 || r.Proofs != 8 || !r.clean() {
		t.Errorf("left alone: %+v", r)
	}

	at := func(name string) string { return filepath.Join(bundles, name) }
	another, err := os.ReadFile(at("3.tar.gz.tlog-proof"))
	if err = errors.Join(err, os.WriteFile(at("4.tar.gz.tlog-proof"), another, 0o600), os.Remove(at("5.tar.gz.tlog-proof"))); err != nil {
		t.Fatal(err)
	}
	r := reconcile(t, log, bundles)
	if len(r.Bad) != 1 || r.Bad[0].Path != "4.tar.gz" || !strings.Contains(r.Bad[0].Err.Error(), "does not hold this bundle") ||
		len(r.Unproven) != 1 || r.Unproven[0].Path != "5.tar.gz" || len(r.Missing)+len(r.Unlogged) != 0 {
		t.Errorf("the proof of another, and none: %+v", r)
	}

	if err := errors.Join(os.WriteFile(at("2.tar.gz"), []byte("another"), 0o600), os.Remove(at("7.tar.gz"))); err != nil {
		t.Fatal(err)
	}
	r = reconcile(t, log, bundles)
	if len(r.Missing) != 2 || r.Missing[0].Index != 2 || r.Missing[1].SessionID != "s7" || len(r.Unlogged) != 1 || r.Unlogged[0].Path != "2.tar.gz" || len(r.Bad) != 1 {
		t.Errorf("one changed, one removed: %+v", r)
	}

	place(t, log, earlier) // the bundles were given proofs since
	if r := reconcile(t, log, bundles); len(r.Bad) != 2 || !strings.Contains(r.Bad[1].Err.Error(), "rolled back") {
		t.Errorf("rolled back: %+v", r)
	}

	torn := bytes.Clone(earlier[leavesName])
	torn[20] ^= 1
	place(t, log, map[string][]byte{leavesName: torn})
	if r := reconcile(t, log, bundles); r.Changed == nil || !strings.Contains(r.Changed.Error(), "leaf 0") {
		t.Errorf("a leaf changed: %+v", r)
	}
}

// The log may grow while it is compared: a proof that is newer than the view is checked against
// the log as it is then. A proof that no log gave stays bad.
func TestLogMayGrowDuringAComparison(t *testing.T) {
	dir, bundles := t.TempDir(), t.TempDir()
	l := open(t, dir)
	defer closeLog(t, l)
	logged(t, l, bundles, 0, 2)
	v, err := OpenView(dir, verifierOf(t, keyOf(1)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = v.Close() }()
	logged(t, l, bundles, 2, 6)
	r, err := v.Reconcile(bundles, found(t, bundles))
	if err != nil || r.Leaves != 2 || r.Proofs != 6 || len(r.Bad) != 0 || len(r.Missing) != 0 || len(r.Unlogged) != 4 {
		t.Errorf("%+v, %v", r, err)
	}
	other := open(t, t.TempDir())
	defer closeLog(t, other)
	logged(t, other, bundles, 5, 9) // three more bundles, and one with a proof of another log
	if r, err = v.Reconcile(bundles, found(t, bundles)); err != nil || len(r.Bad) != 4 {
		t.Errorf("%+v, %v", r, err)
	}
}
