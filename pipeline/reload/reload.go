// Package reload holds the content of a file, and reads it again when it changes.
//
// It owns when to check the file and what to do about a broken change. The reader function owns
// the meaning of the file.
//
// Invariants: the file is checked at most once a second, by a call that needs it; a change that
// cannot be read leaves the last valid state in effect and is reported once; no goroutine runs.
package reload

import (
	"io/fs"
	"os"
	"sync"
	"time"
)

// Recheck is the maximum age of the last check of a file.
const Recheck = time.Second

// File is a file's content. Any goroutine may use it.
type File[T any] struct {
	path    string
	read    func(path string) (T, error)
	changed func(T, error)

	mu      sync.Mutex
	value   T
	state   stamp // of the file when it was last read, successfully or not
	checked time.Time
}

// stamp identifies a state of a file.
type stamp struct {
	modified time.Time
	size     int64
	mode     fs.FileMode
}

// Open reads the file. changed is called after every later change, with the new content or with
// the reason why it cannot be read.
func Open[T any](path string, read func(path string) (T, error), changed func(T, error)) (*File[T], error) {
	state := stampOf(path) // before reading: a change in between is noticed later
	value, err := read(path)
	if err != nil {
		return nil, err
	}
	return &File[T]{path: path, read: read, changed: changed, value: value, state: state, checked: time.Now()}, nil
}

// Current returns the content in effect. It first checks the file if the last check is older than
// Recheck. A change of the clock can only make a check earlier.
func (f *File[T]) Current(now time.Time) T {
	f.mu.Lock()
	defer f.mu.Unlock()
	if age := now.Sub(f.checked); age >= 0 && age < Recheck { // below 0: the clock was set back
		return f.value
	}
	f.checked = now
	if state := stampOf(f.path); state != f.state {
		f.state = state
		value, err := f.read(f.path)
		if err == nil {
			f.value = value
		}
		f.changed(value, err)
	}
	return f.value
}

// stampOf returns the zero stamp for a file that cannot be checked. Reading it will report the
// reason.
func stampOf(path string) stamp {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}
	}
	return stamp{modified: info.ModTime(), size: info.Size(), mode: info.Mode()}
}
