package auth

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/plumbline/plumbline/pipeline/durable"
)

// FileName is the name of the token file in a data directory.
const FileName = "tokens.jsonl"

// The errors of a TokenFile.
var (
	ErrNoEntry = errors.New("no token has this name")
	ErrTaken   = errors.New("a token has this name already")
)

// TokenFile changes a token file. Services that use the file see a change within a second
// (reload.Recheck). One process changes it at a time. Comments and the lines of other entries stay
// as they are.
type TokenFile struct{ Path string }

// List returns the entries in the order of the file.
func (f TokenFile) List() ([]Entry, error) { return readFile(f.Path) }

// New adds an entry with a new token, and returns the token: the file has only its hash. It creates
// the file where there is none. The error wraps ErrTaken if the name is not free.
func (f TokenFile) New(ctx context.Context, entry Entry, now time.Time) (token string, err error) {
	err = f.change(ctx, func(lines []fileLine) ([]fileLine, error) {
		if _, taken := at(lines, entry.Name); taken {
			return nil, fmt.Errorf("%q: %w: choose another name, or replace the token with plumbline token rotate", entry.Name, ErrTaken)
		}
		token = newToken()
		entry.SHA256, entry.Created = Hash(token), now.UTC().Truncate(time.Second)
		if err := entry.validate(); err != nil {
			return nil, err
		}
		return append(lines, fileLine{entry: &entry}), nil
	})
	return token, err
}

// Rotate gives an entry a new token, and returns it. The previous one, and those of earlier rotations,
// stay valid for overlap at most, if they do not expire earlier. The new one does not expire if
// validFor is 0. The error wraps ErrNoEntry.
func (f TokenFile) Rotate(ctx context.Context, name string, overlap, validFor time.Duration, now time.Time) (token string, entry *Entry, err error) {
	err = f.change(ctx, func(lines []fileLine) ([]fileLine, error) {
		i, found := at(lines, name)
		if !found {
			return nil, f.noEntry(name)
		}
		token = newToken()
		entry = lines[i].entry
		until := now.Add(overlap).UTC().Truncate(time.Second)
		replaced := Previous{SHA256: entry.SHA256, Expires: until}
		if !entry.Expires.IsZero() {
			replaced.Expires = entry.Expires
		}
		entry.Previous = append(entry.Previous, replaced)
		for i := range entry.Previous { // without an overlap, nobody has a valid token but the holder of the new one
			if p := &entry.Previous[i]; p.Expires.After(until) {
				p.Expires = until
			}
		}
		entry.Previous = slices.DeleteFunc(entry.Previous, func(p Previous) bool { return expired(p.Expires, now) })
		entry.SHA256, entry.Created, entry.Expires = Hash(token), now.UTC().Truncate(time.Second), time.Time{}
		if validFor > 0 {
			entry.Expires = entry.Created.Add(validFor)
		}
		lines[i].text = ""
		return lines, nil
	})
	return token, entry, err
}

// Revoke removes an entry with all its tokens. The error wraps ErrNoEntry.
func (f TokenFile) Revoke(ctx context.Context, name string) error {
	return f.change(ctx, func(lines []fileLine) ([]fileLine, error) {
		i, found := at(lines, name)
		if !found {
			return nil, f.noEntry(name)
		}
		return slices.Delete(lines, i, i+1), nil
	})
}

func (f TokenFile) noEntry(name string) error {
	return fmt.Errorf("%q: %w in %s: plumbline token ls lists them", name, ErrNoEntry, f.Path)
}

func at(lines []fileLine, name string) (int, bool) {
	i := slices.IndexFunc(lines, func(l fileLine) bool { return l.entry != nil && l.entry.Name == name })
	return i, i >= 0
}

// newToken returns a secret of at least 128 bits. The prefix lets scanners of source code recognise it.
func newToken() string { return "plumbline_" + rand.Text() }

// lockWait bounds the wait for another process that changes the file, which takes milliseconds.
const lockWait = 10 * time.Second

// change replaces the file, durably and as a whole, by what do makes of its lines.
func (f TokenFile) change(ctx context.Context, do func([]fileLine) ([]fileLine, error)) (err error) {
	path, err := filepath.EvalSymlinks(f.Path)                              // a rename would replace the link
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) { // CheckOwner says what to do
		path = f.Path
	} else if err != nil {
		return fmt.Errorf("token file: %w", err)
	}
	if err := durable.CheckOwner(path); err != nil {
		return fmt.Errorf("token file: %w", err)
	}
	if err := durable.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	lock, err := durable.Await(waiting, path+".lock", "plumbline token")
	if err != nil {
		return fmt.Errorf("change the token file: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	lines, err := readLines(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if lines, err = do(lines); err != nil {
		return err
	}
	var text strings.Builder
	for _, l := range lines {
		if l.text == "" && l.entry != nil { // new or changed
			encoded, err := json.Marshal(l.entry)
			if err != nil {
				return fmt.Errorf("write the token file: %w", err)
			}
			l.text = string(encoded)
		}
		text.WriteString(l.text + "\n")
	}
	if err := durable.RemoveStaged(path); err != nil {
		return err
	}
	return durable.WriteFile(path, []byte(text.String()), 0o600)
}
