package opledger_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/pipeline/opledger"
)

// Any missing file of the ledger is reported. The remaining files are valid by themselves.
func TestMissingFilesOfALedgerAreNamed(t *testing.T) {
	name := func(dir string, number string) string { return filepath.Join(dir, "ledger-00000"+number+".jsonl") }
	for _, c := range []struct {
		what    string
		do      func(dir string) error
		want    string // the fault that Walk reports
		refused bool   // Open refuses the ledger
	}{
		{"none", func(string) error { return nil }, "", false},
		{"the first", func(dir string) error { return os.Remove(name(dir, "1")) }, "ledger-000001.jsonl: the file is missing, but ledger-000002.jsonl exists", true},
		{"one between", func(dir string) error { return os.Remove(name(dir, "2")) }, "ledger-000002.jsonl: the file is missing, but ledger-000003.jsonl exists", true},
		{"the first two, the last one in their place", func(dir string) error {
			return errors.Join(os.Remove(name(dir, "2")), os.Rename(name(dir, "3"), name(dir, "1")))
		}, "but there is no file before it", false},
	} {
		dir := t.TempDir()
		book := openBook(t, dir)
		appendAll(t, book, events(1, 12))
		closeBook(t, book)
		if err := c.do(dir); err != nil {
			t.Fatal(err)
		}
		var faults []string
		err := opledger.Walk(dir, func(*opledger.Placed) error { return nil }, func(file string, fault error) { faults = append(faults, file+": "+fault.Error()) })
		if all := strings.Join(faults, "\n"); err != nil || (c.want == "") != (all == "") || !strings.Contains(all, c.want) {
			t.Errorf("%s: faults %q, error %v, want %q", c.what, all, err, c.want)
		}
		again, err := opledger.Open(dir, "operator", small)
		if (err != nil) != c.refused || err != nil && !strings.Contains(err.Error(), "restore it from a backup") {
			t.Errorf("%s: opened with error %v", c.what, err)
		}
		if err == nil {
			closeBook(t, again)
		}
	}
}
