package durable

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file of another user is not replaced, and root makes none in another user's directory.
func TestCheckOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file to another user")
	}
	ours, theirs := t.TempDir(), t.TempDir()
	file := filepath.Join(ours, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, theirs} {
		if err := os.Chown(path, 12345, 12345); err != nil {
			t.Fatal(err)
		}
	}
	for path, refused := range map[string]bool{
		file:                       true,
		filepath.Join(ours, "new"): false,
		filepath.Join(ours, "not", "there", "new"): false,
		filepath.Join(theirs, "new"):               true,
		filepath.Join(theirs, "keys", "new"):       true,
	} {
		err := CheckOwner(path)
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "belongs to user 12345: run this command as that user") {
			t.Errorf("%s: %v, want refused %v", path, err, refused)
		}
	}
}
