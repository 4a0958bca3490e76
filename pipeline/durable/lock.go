package durable

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrLocked is wrapped by the errors of Acquire and TryLock if another process holds the lock.
var ErrLocked = errors.New("in use by another process")

// Lock is the exclusive use of a directory. The kernel releases it when its process ends, for any
// reason.
type Lock struct {
	file *os.File
}

// Acquire locks the file path for this process, and creates it if necessary. It writes the holder
// into the file: "pid 123, verifier". It does not wait. The file is never removed, because then
// two processes could lock two files with the same name.
func Acquire(path, holder string) (*Lock, error) {
	lock, err := TryLock(path)
	if errors.Is(err, ErrLocked) {
		other := "holder unknown"
		if text, readErr := os.ReadFile(path); readErr == nil && len(text) > 0 {
			other = strings.TrimSpace(string(text))
		}
		return nil, fmt.Errorf("%s is %w (%s): stop that one, or use another directory", filepath.Dir(path), ErrLocked, other)
	}
	if err != nil {
		return nil, err
	}
	line := fmt.Sprintf("pid %d, %s\n", os.Getpid(), holder)
	err = lock.file.Truncate(0)
	if err == nil {
		_, err = lock.file.WriteAt([]byte(line), 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), lock.file.Close())
	}
	return lock, nil
}

// TryLock is Acquire for a file of another program: it does not write to the file.
func TryLock(path string) (*Lock, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrLocked
		}
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
	}
	return &Lock{file: file}, nil
}

// Release releases the lock.
func (l *Lock) Release() error {
	if err := l.file.Close(); err != nil {
		return fmt.Errorf("unlock %s: %w", l.file.Name(), err)
	}
	return nil
}
