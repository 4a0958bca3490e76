package anchors

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/aivs/anchor"
)

// logged writes bundles below a directory, and puts them into a log with the proof
// beside each.
func logged(t *testing.T, l *Log, dir string, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		path := filepath.Join(dir, "agent", fmt.Sprintf("%d.tar.gz", i))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, fmt.Appendf(nil, "bundle %d", i), 0o600)); err != nil {
			t.Fatal(err)
		}
		digest, err := digestOf(path)
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := anchor.Leaf(fmt.Sprint("s", i), digest)
		if err != nil {
			t.Fatal(err)
		}
		if err := PlaceProof(path, appendTo(t, l, [][]byte{leaf})[0]); err != nil {
			t.Fatal(err)
		}
	}
}

func reconcile(t *testing.T, log, bundles string) *Reconciliation {
	t.Helper()
	v, err := OpenView(log, verifierOf(t, keyOf(1)))
	if err != nil {
		t.Fatal(err)
	}
	r, err := v.Reconcile(bundles)
	if err = errors.Join(err, v.Close()); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReconcile(t *testing.T) {
	log, bundles := t.TempDir(), t.TempDir()
	l := open(t, log)
	logged(t, l, bundles, 0, 5)
	earlier := files(t, log)
	logged(t, l, bundles, 5, 8)
	closeLog(t, l)
	if r := reconcile(t, log, bundles); r.Leaves != 8 || r.Bundles != 8 || len(r.Faults)+len(r.Missing)+len(r.Unlogged) != 0 {
		t.Errorf("left alone: %+v", r)
	}

	changed := filepath.Join(bundles, "agent", "2.tar.gz")
	if err := errors.Join(os.WriteFile(changed, []byte("another"), 0o600), os.Remove(filepath.Join(bundles, "agent", "7.tar.gz"))); err != nil {
		t.Fatal(err)
	}
	r := reconcile(t, log, bundles)
	if len(r.Missing) != 2 || r.Missing[0].SessionID != "s2" || r.Missing[1].SessionID != "s7" || len(r.Unlogged) != 1 || r.Unlogged[0] != changed || len(r.Faults) != 0 {
		t.Errorf("one changed, one removed: %+v", r)
	}

	place(t, log, earlier) // three bundles were given proofs since
	if r := reconcile(t, log, bundles); len(r.Faults) != 2 || !strings.Contains(r.Faults[0], "rolled back") {
		t.Errorf("rolled back: %+v", r)
	}

	torn := bytes.Clone(earlier[leavesName])
	torn[20] ^= 1
	place(t, log, map[string][]byte{leavesName: torn})
	if r := reconcile(t, log, bundles); len(r.Faults) != 1 || !strings.Contains(r.Faults[0], "leaf 0") {
		t.Errorf("a leaf changed: %+v", r)
	}
}
