package durable

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// WriteFile writes data to path, completely or not at all: a reader sees the previous file or the
// new one. The sequence of system calls is
//
//	openat(dir/.path.*, O_CREAT|O_EXCL) write fchmod fsync close renameat openat(dir) fsync close
//
// The directory must exist durably (see MkdirAll).
func WriteFile(path string, data []byte, mode fs.FileMode) error {
	staged, err := stage(path, data, mode)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := Rename(staged, path); err != nil {
		return errors.Join(err, removeIfThere(staged))
	}
	return nil
}

// Create is WriteFile for a file that must not exist. A link, unlike a rename, fails where the name
// is taken. The error then wraps fs.ErrExist.
func Create(path string, data []byte, mode fs.FileMode) error {
	if err := link(path, data, mode); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// CreateWhereLinked is Create, but on a file system without links it replaces a file with this name.
func CreateWhereLinked(path string, data []byte, mode fs.FileMode) error {
	if err := CreateUnsynced(path, data, mode); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// CreateUnsynced is CreateWhereLinked, but it leaves the directory to the caller, who has many files in
// it: the name survives a loss of power once the directory was synced (Sync). The file is complete in any case.
func CreateUnsynced(path string, data []byte, mode fs.FileMode) error {
	err := link(path, data, mode)
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EPERM) {
		return WriteFile(path, data, mode)
	}
	return err
}

// link writes and syncs data to a new file, and gives it the name path.
func link(path string, data []byte, mode fs.FileMode) error {
	staged, err := stage(path, data, mode)
	if err != nil {
		return err
	}
	return errors.Join(os.Link(staged, path), removeIfThere(staged)) // one sync of the directory covers both
}

// Blank reports whether data is what a loss of power leaves of a file that was written and never
// synced: nothing, or only zero bytes.
func Blank(data []byte) bool { return len(bytes.Trim(data, "\x00")) == 0 }

// stage writes and syncs data to a new file in the directory of path, and returns its name.
func stage(path string, data []byte, mode fs.FileMode) (string, error) {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return "", err
	}
	if err := errors.Join(fill(file, data, mode), file.Close()); err != nil {
		return "", errors.Join(err, removeIfThere(file.Name()))
	}
	return file.Name(), nil
}

func fill(file *os.File, data []byte, mode fs.FileMode) error {
	if _, err := file.Write(data); err != nil {
		return err
	}
	if err := file.Chmod(mode); err != nil {
		return err
	}
	return file.Sync()
}

// RemoveStaged removes what WriteFile of path left behind in a process that was killed. Nobody
// may write path meanwhile.
func RemoveStaged(path string) error {
	dir, prefix := filepath.Dir(path), "."+filepath.Base(path)+"."
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), prefix) {
			err = errors.Join(err, removeIfThere(filepath.Join(dir, entry.Name())))
		}
	}
	if err != nil {
		return fmt.Errorf("remove the unfinished files of %s: %w", path, err)
	}
	return nil
}

// Rename moves a file, which the caller has synced, and syncs the directories of both names:
//
//	renameat openat(newdir) fsync close [openat(olddir) fsync close]
//
// It replaces an existing file at newPath.
func Rename(oldPath, newPath string) error {
	if err := os.Rename(oldPath, newPath); err != nil {
		return err // an os.LinkError contains both paths
	}
	if err := syncDir(filepath.Dir(newPath)); err != nil {
		return fmt.Errorf("rename to %s: %w", newPath, err)
	}
	if filepath.Dir(oldPath) == filepath.Dir(newPath) {
		return nil
	}
	if err := syncDir(filepath.Dir(oldPath)); err != nil {
		return fmt.Errorf("rename from %s: %w", oldPath, err)
	}
	return nil
}

// Remove deletes a file and syncs its directory. A missing file is not an error.
func Remove(path string) error {
	if err := removeIfThere(path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// MkdirAll creates a directory and its missing parents, from the top down, and syncs the parent
// of each:
//
//	mkdirat openat(parent) fsync close   (for each level that is missing)
func MkdirAll(path string, mode fs.FileMode) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return fmt.Errorf("create directory %s: a file has this name", path)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("create directory: %w", err)
	}
	parent := filepath.Dir(filepath.Clean(path))
	if err := MkdirAll(parent, mode); err != nil {
		return err
	}
	// Another process may have created it meanwhile, and may not have synced it yet.
	if err := os.Mkdir(path, mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("create directory: %w", err)
	}
	return syncDir(parent)
}

func syncDir(path string) error {
	if err := Sync(path); err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}

// Sync syncs a file or directory that other code wrote.
func Sync(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("sync %s: %w", path, err)
	}
	return nil
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Space returns how many bytes of the directory's disk are free for this process, and the size of
// the disk.
func Space(dir string) (free, whole int64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, 0, fmt.Errorf("read the free space of %s: %w", dir, err)
	}
	block := int64(s.Bsize)                                      // of other types on other systems
	return int64(s.Bavail) * block, int64(s.Blocks) * block, nil // numbers of blocks
}

// OpenPlain opens a plain file for reading. It refuses a device, pipe or socket, which could
// block or never end. Opening one does not block either.
func OpenPlain(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("open %s: not a plain file", path)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// ReadPlain reads a whole plain file of at most `most` bytes.
func ReadPlain(path string, most int64) ([]byte, error) {
	file, err := OpenPlain(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("longer than %d bytes", most)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return text, nil
}

// maxReadable is how many bytes of the original text SafeName keeps.
const maxReadable = 48

// SafeName makes a file name from any text: a readable beginning (letters, digits, "_" and "-";
// everything else becomes "_"), "-", and 16 hexadecimal digits of the text's SHA-256, which
// distinguish texts that look alike. The name never contains a dot or a slash and never begins
// with "-". It cannot be reversed, so a record must contain the text itself.
func SafeName(text string) string {
	sum := sha256.Sum256([]byte(text))
	readable := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, text[:min(len(text), maxReadable)])
	readable = strings.TrimLeft(readable, "-")
	if readable == "" {
		readable = "_"
	}
	return readable + "-" + hex.EncodeToString(sum[:8])
}
