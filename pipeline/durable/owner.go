package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// CheckOwner returns an error if a file that this process writes at path would be of no use to the
// service that reads it: the file that it replaces belongs to another user, or there is none and root
// would make it in the directory of another user. Check before the first file is made, a lock
// included.
func CheckOwner(path string) error {
	existing := path
	info, err := os.Stat(existing)
	for errors.Is(err, fs.ErrNotExist) && existing != filepath.Dir(existing) {
		existing = filepath.Dir(existing)
		info, err = os.Stat(existing)
	}
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: run this command as the user that the service runs as (sudo -u USER)", err)
	}
	if err != nil {
		return err
	}
	owner, known := info.Sys().(*syscall.Stat_t)
	if !known || int(owner.Uid) == os.Geteuid() || existing != path && os.Geteuid() != 0 { // other users may share a directory
		return nil
	}
	return fmt.Errorf("%s belongs to user %d: run this command as that user (sudo -u '#%d'), or the service could not read %s",
		existing, owner.Uid, owner.Uid, path)
}
