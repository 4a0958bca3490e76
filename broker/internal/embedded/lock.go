package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/plumbline/plumbline/pipeline/durable"
)

// lockPatience is how long a directory may stay locked by a server that is
// shutting down, such as the child of a parent that was just killed.
const lockPatience = 5 * time.Second

// ErrInUse is wrapped by the error for a directory that another server uses.
var ErrInUse = errors.New("the directory is in use by another broker")

// Lock is the exclusive right to a server's directory. The kernel releases it
// when the process ends, for any reason.
type Lock struct{ file *os.File }

// Acquire locks the directory, and creates it if it is missing.
func Acquire(dir string) (*Lock, error) {
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the broker's directory: %w", err)
	}
	path := filepath.Join(dir, "lock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the broker's lock: %w", err)
	}
	if err := flock(f); err != nil {
		return nil, errors.Join(inUse(path, err), f.Close())
	}
	if err := writePid(f); err != nil {
		return nil, errors.Join(fmt.Errorf("write the broker's lock %s: %w", path, err), f.Close())
	}
	return &Lock{file: f}, nil
}

// flock polls, because a blocking flock has no timeout.
func flock(f *os.File) error {
	deadline := time.Now().Add(lockPatience)
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil || !errors.Is(err, syscall.EWOULDBLOCK) || time.Now().After(deadline) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func inUse(path string, cause error) error {
	if !errors.Is(cause, syscall.EWOULDBLOCK) {
		return fmt.Errorf("lock %s: %w", path, cause)
	}
	holder, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("%w (lock %s, unreadable: %w)", ErrInUse, path, err)
	}
	return fmt.Errorf("%w: lock %s is held by process %s; stop that one or choose another data directory",
		ErrInUse, path, strings.TrimSpace(string(holder)))
}

func writePid(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0)
	return err
}

// Release releases the directory.
func (l *Lock) Release() error { return l.file.Close() }
