package exporter

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// roomBytes is what must be free below the bundle directory.
const roomBytes = 1 << 20

// room returns a function that reports whether the bundle directory takes a file. It writes one:
// the free space of a file system is not what a quota leaves, nor room for another name. The
// file's name begins with a dot: it is no bundle.
func room(dir string) func(context.Context) error {
	path, content := filepath.Join(dir, ".room"), make([]byte, roomBytes)
	return func(context.Context) error {
		err := os.WriteFile(path, content, 0o600)
		if removed := os.Remove(path); err == nil {
			err = removed
		}
		if where, ok := errors.AsType[*fs.PathError](err); ok {
			err = where.Err // readiness is public, and does not show the path
		}
		if err != nil {
			return fmt.Errorf("no file of %d bytes can be written: %w", roomBytes, err)
		}
		return nil
	}
}
