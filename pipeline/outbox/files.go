package outbox

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/plumbline/plumbline/pipeline/durable"
)

// suffix ends the name of each file of a list. A file holds JSON lines, one item each: the items
// that were added together, except those that are done.
const suffix = ".waiting"

// files is a list on disk. It is safe for concurrent use.
type files[T any] struct {
	dir string

	mu     sync.Mutex
	counts map[string]int // number of items by file name
	total  int
}

// openFiles creates the directory where it is missing, and counts the items in it.
func openFiles[T any](dir string) (*files[T], error) {
	f := &files[T]{dir: dir, counts: map[string]int{}}
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), suffix) {
			continue
		}
		items, err := f.read(entry.Name())
		if err != nil {
			return nil, err
		}
		f.count(entry.Name(), len(items))
	}
	return f, nil
}

// Read returns the items of a list. Another process may be working on the list.
func Read[T any](dir string) (items []T, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	f := files[T]{dir: dir}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), suffix) {
			continue
		}
		some, err := f.read(entry.Name())
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // all its items were done meanwhile
			return nil, err
		}
		items = append(items, some...)
	}
	return items, err
}

// add writes the items to a new file, whose name is derived from them.
func (f *files[T]) add(items []T) error {
	text, err := encode(items)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	name := hex.EncodeToString(sum[:16]) + suffix
	if err := durable.WriteFile(filepath.Join(f.dir, name), text, 0o600); err != nil {
		return err
	}
	f.count(name, len(items))
	return nil
}

// keep replaces the contents of a file by the items that are left.
func (f *files[T]) keep(name string, items []T) error {
	path := filepath.Join(f.dir, name)
	text, err := encode(items)
	switch {
	case err != nil:
	case len(items) == 0:
		err = durable.Remove(path)
	default:
		err = durable.WriteFile(path, text, 0o600)
	}
	if err == nil {
		f.count(name, len(items))
	}
	return err
}

func (f *files[T]) read(name string) (items []T, err error) {
	path := filepath.Join(f.dir, name)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, len(text)+1)
	for lines.Scan() {
		var item T
		if err := json.Unmarshal(lines.Bytes(), &item); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		items = append(items, item)
	}
	return items, lines.Err()
}

func (f *files[T]) count(name string, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.total += n - f.counts[name]
	f.counts[name] = n
	if n == 0 {
		delete(f.counts, name)
	}
}

// names returns the names of the files that hold items.
func (f *files[T]) names() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Keys(f.counts))
}

func (f *files[T]) waiting() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.total
}

func encode[T any](items []T) ([]byte, error) {
	var text []byte
	for i := range items {
		line, err := json.Marshal(&items[i])
		if err != nil {
			return nil, fmt.Errorf("encode an item: %w", err)
		}
		text = append(append(text, line...), '\n')
	}
	return text, nil
}
