// Package reload keeps what a file says, and reads it again when it changes.
//
// It owns when to look at the file and what to do about a broken change; what the
// file means is its reader's business.
//
// Invariants: the file is looked at once a second at most, by whoever asks then; a
// change that cannot be read leaves the last good state in force and is reported
// once; no goroutine runs.
package reload

import (
	"io/fs"
	"os"
	"sync"
	"time"
)

// Recheck is how old the knowledge of a file may become.
const Recheck = time.Second

// File is a file's content. It may be used by any goroutine.
type File[T any] struct {
	path    string
	read    func(path string) (T, error)
	changed func(T, error)

	mu      sync.Mutex
	value   T
	state   stamp // of the file when it was last read, well or badly
	checked time.Time
}

// stamp tells one state of a file from another.
type stamp struct {
	modified time.Time
	size     int64
	mode     fs.FileMode
}

// Open reads the file. changed is told of every later change: what it is now, or
// why that cannot be read.
func Open[T any](path string, read func(path string) (T, error), changed func(T, error)) (*File[T], error) {
	state := stampOf(path) // before reading: a change in between is then seen
	value, err := read(path)
	if err != nil {
		return nil, err
	}
	return &File[T]{path: path, read: read, changed: changed, value: value, state: state, checked: time.Now()}, nil
}

// Current returns what is in force, after a look at the file if the last one is
// older than Recheck. A clock that is set only brings a look forward.
func (f *File[T]) Current(now time.Time) T {
	f.mu.Lock()
	defer f.mu.Unlock()
	if age := now.Sub(f.checked); age >= 0 && age < Recheck { // less than 0: the clock was set back
		return f.value
	}
	f.checked = now
	if state := stampOf(f.path); state != f.state {
		f.state = state
		f.reload()
	}
	return f.value
}

func (f *File[T]) reload() {
	value, err := f.read(f.path)
	if err == nil {
		f.value = value
	}
	f.changed(value, err)
}

// stampOf returns the zero stamp for a file that cannot be looked at; reading it
// will say why.
func stampOf(path string) stamp {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}
	}
	return stamp{modified: info.ModTime(), size: info.Size(), mode: info.Mode()}
}
