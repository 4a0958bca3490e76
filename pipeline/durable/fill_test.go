package durable

import (
	"os"
	"path/filepath"
	"testing"
)

// A call returns an error if a file or directory cannot be written or synced: the bytes, perhaps of
// a key, may not be on disk.
func TestWhatCannotBeSyncedIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	readOnly, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	_, pipe, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]*os.File{"a file that cannot be written": readOnly, "a pipe, which has no disk": pipe} {
		if err := fill(file, make([]byte, 32), 0o600); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := syncDir(os.DevNull); err == nil {
		t.Error("a directory that has no disk: no error")
	}
}
