package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// errLocked reports that another process, or another engine of this one, holds
// the lock.
var errLocked = errors.New("the lock is held")

const lockPoll = 20 * time.Millisecond

// tryLock takes an exclusive lock on the file, which it creates if needed. The
// kernel releases it when the file is closed or its process ends.
func tryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return f, nil
	}
	defer f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errLocked
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

// awaitLock waits for the lock and takes it.
func awaitLock(ctx context.Context, path string) (*os.File, error) {
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for {
		f, err := tryLock(path)
		if !errors.Is(err, errLocked) {
			return f, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("await the lock %s: %w", path, ctx.Err())
		}
	}
}
