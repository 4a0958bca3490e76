package durable

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

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
