package handshake_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/pipeline/handshake"
)

// The first of several processes makes the key, and all of them have it.
func TestKeyIsMadeOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys", "handshake.key")
	ids := make([]string, 8)
	var processes errgroup.Group
	for i := range ids {
		processes.Go(func() error {
			key, err := handshake.OpenKey(t.Context(), path)
			if err == nil {
				ids[i] = key.Public().KeyID
			}
			return err
		})
	}
	if err := processes.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if len(id) != 16 || id != ids[0] {
			t.Errorf("keys %v, want one", ids)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 || info.Size() != 32 {
		t.Errorf("the key file is %v, %v", info, err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := handshake.OpenKey(t.Context(), path); err == nil {
		t.Error("a key that others can read is used")
	}
}
