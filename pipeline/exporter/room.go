package exporter

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// roomBytes is how much space must be free in the bundle directory.
const roomBytes = 1 << 20

// room returns a function that returns an error unless a file can be written to the bundle
// directory. It writes one, because the free space of a file system ignores quotas and the space
// for another name. The file's name begins with a dot: it is not a bundle.
func room(dir string) func(context.Context) error {
	path, content := filepath.Join(dir, ".room"), make([]byte, roomBytes)
	return func(context.Context) error {
		err := os.WriteFile(path, content, 0o600)
		if removed := os.Remove(path); err == nil {
			err = removed
		}
		if where, ok := errors.AsType[*fs.PathError](err); ok {
			err = where.Err // readiness is public and must not show the path
		}
		if err != nil {
			return fmt.Errorf("no file of %d bytes can be written: %w", roomBytes, err)
		}
		return nil
	}
}
