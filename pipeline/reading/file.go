package reading

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/plumbline/plumbline/schema"
)

// Altered is the error of a bundle whose bytes are not those that were sealed.
type Altered struct {
	Path  string        // within the bundle directory
	Found schema.Digest // of its bytes now
}

func (a *Altered) Error() string {
	return fmt.Sprintf("the file %s was changed since it was sealed: its SHA-256 is %s", a.Path, a.Found)
}

// OpenBundle opens a bundle below a bundle directory, after hashing it: a reader never receives other bytes
// than those that were sealed. The error wraps fs.ErrNotExist if there is no directory or no such file in it,
// and is an Altered if the bytes differ. A path that leads out of the directory is an error: the path comes from the database.
func OpenBundle(dir, name string, sealed schema.Digest) (file *os.File, err error) {
	if dir == "" {
		return nil, fs.ErrNotExist
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the bundle directory: %w", err)
	}
	file, err = root.Open(filepath.FromSlash(name))
	if err = errors.Join(err, root.Close()); err != nil {
		return nil, fmt.Errorf("open bundle %s: %w", name, err)
	}
	defer func() {
		if err != nil {
			_ = file.Close()
		}
	}()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return nil, fmt.Errorf("read bundle %s: %w", name, err)
	}
	if found := schema.Digest(hash.Sum(nil)); found != sealed {
		return nil, &Altered{name, found}
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read bundle %s: %w", name, err)
	}
	return file, nil
}
