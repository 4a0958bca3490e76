package embedded

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/plumbline/plumbline/pipeline/durable"
)

// lockPatience is how long a directory may stay locked by a server that is
// shutting down, such as the child of a parent that was just killed.
const lockPatience = 5 * time.Second

// Acquire locks the directory, and creates it if it is missing. The error wraps
// durable.ErrLocked if another server uses the directory.
func Acquire(dir string) (*durable.Lock, error) {
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the broker's directory: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockPatience)
	defer cancel()
	lock, err := durable.Await(ctx, filepath.Join(dir, "lock"), "broker")
	if err != nil {
		return nil, fmt.Errorf("the broker's directory: %w", err)
	}
	return lock, nil
}
