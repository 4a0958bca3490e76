package keystore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/plumbline/plumbline/pipeline/durable"
)

// lockWait is long: the lock is never held for longer than a few writes take.
const lockWait = 10 * time.Second

// locked runs do while it holds the directory's lock, and creates the directory. A directory that
// is not writable, such as a mounted secret, needs no lock: its key and list are read, and a call
// that has to write fails.
func (s Slot) locked(ctx context.Context, do func() (*Opened, error)) (o *Opened, err error) {
	dir := filepath.Dir(s.Path)
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("directory of keys: %w", err)
	}
	waiting, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	lock, err := durable.Await(waiting, filepath.Join(dir, lockName), "keys")
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) {
		return do()
	}
	if err != nil {
		return nil, fmt.Errorf("directory of keys: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	return do()
}
