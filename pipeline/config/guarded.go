package config

import (
	"fmt"
	"io"
	"os"
)

// ReadGuarded reads a file of at most so many bytes. It refuses a longer one whole, and one whose mode has a forbidden
// bit; advice says what that bit permits, and the command that removes it.
func ReadGuarded(path string, most int, forbidden os.FileMode, advice string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&forbidden != 0 {
		return nil, fmt.Errorf("%s: mode %#o %s %s", path, mode, advice, path)
	}
	text, err := io.ReadAll(io.LimitReader(file, int64(most)+1))
	if err != nil {
		return nil, err
	}
	if len(text) > most {
		return nil, fmt.Errorf("%s: is larger than %d bytes", path, most)
	}
	return text, nil
}
