package durable

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ErrLocked is wrapped by Acquire's error if another process holds the lock.
var ErrLocked = errors.New("in use by another process")

// Lock is the use of a directory, exclusive or shared. The kernel releases it when its process ends, for any
// reason.
type Lock struct {
	file *os.File
}

// Acquire locks the file path for this process, and creates it if necessary. It writes the holder
// into the file: "pid 123, verifier". With an empty holder it leaves the contents unchanged, which
// belong to another program. It does not wait. The file is never removed, because then two
// processes could lock two files with the same name.
func Acquire(path, holder string) (*Lock, error) { return acquire(path, holder, unix.LOCK_EX) }

// Share is Acquire for a directory that several processes use: Acquire fails while any of them has the
// lock, and Share fails while a process has it alone.
func Share(path, holder string) (*Lock, error) { return acquire(path, holder, unix.LOCK_SH) }

func acquire(path, holder string, how int) (*Lock, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	if err := unix.Flock(int(file.Fd()), how|unix.LOCK_NB); err != nil {
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
		}
		by := "holder unknown"
		if text, readErr := os.ReadFile(path); readErr == nil && len(text) > 0 {
			by = strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", ", ")
		}
		err = fmt.Errorf("%s is %w (%s): stop that process, or use another directory", filepath.Dir(path), ErrLocked, by)
		return nil, errors.Join(err, file.Close())
	}
	if holder == "" {
		return &Lock{file: file}, nil
	}
	line := fmt.Sprintf("pid %d, %s\n", os.Getpid(), holder)
	err = file.Truncate(0)
	if err == nil {
		_, err = file.WriteAt([]byte(line), 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
	}
	return &Lock{file: file}, nil
}

// lockPoll is how often Await tries. The kernel's own wait could not be ended by a context.
const lockPoll = 20 * time.Millisecond

// Await is Acquire, but it waits while another process holds the lock, until ctx ends.
func Await(ctx context.Context, path, holder string) (*Lock, error) {
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for {
		lock, err := Acquire(path, holder)
		if !errors.Is(err, ErrLocked) {
			return lock, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w (%w)", err, ctx.Err())
		}
	}
}

func (l *Lock) Release() error {
	if err := l.file.Close(); err != nil {
		return fmt.Errorf("unlock %s: %w", l.file.Name(), err)
	}
	return nil
}
