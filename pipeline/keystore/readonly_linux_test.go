package keystore

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/plumbline/plumbline/aivs/keyring"
)

// A mounted secret is not writable: the existing key is used, and none is created.
func TestReadOnlyDirectory(t *testing.T) {
	obeyPermissions(t)
	s := In(t.TempDir(), keyring.Session)
	made := use(t, s, now)
	dir := filepath.Dir(s.Path)
	if err := errors.Join(os.Remove(filepath.Join(dir, lockName)), os.Chmod(dir, 0o500)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Chmod(dir, 0o700); err != nil {
			t.Error(err)
		}
	})
	if o, err := s.Open(context.Background(), now); err != nil || !o.Private.Equal(made.Private) {
		t.Errorf("read only: %v", err)
	}
	if _, err := s.Rotate(context.Background(), Period{From: now}, now); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("rotated where nothing can be written: %v", err)
	}
}

// obeyPermissions takes from root, for the rest of a test, the right to write where the permissions forbid it. Only the thread of
// the test loses the right, and it ends with the test.
func obeyPermissions(t *testing.T) {
	t.Helper()
	runtime.LockOSThread()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var rights [2]unix.CapUserData
	if err := unix.Capget(&header, &rights[0]); err != nil {
		t.Fatal(err)
	}
	rights[0].Effective &^= 1 << unix.CAP_DAC_OVERRIDE
	if err := unix.Capset(&header, &rights[0]); err != nil {
		t.Fatal(err)
	}
}
