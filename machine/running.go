package machine

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/plumbline/plumbline/pipeline/durable"
)

// StateDir returns the directory for this user's state: plumbline in $XDG_STATE_HOME, or in
// ~/.local/state.
func StateDir() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "plumbline"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the directory for the user's state: %w: set XDG_STATE_HOME", err)
	}
	return filepath.Join(home, ".local", "state", "plumbline"), nil
}

// note is one file of the directory that lists this user's running machines. It has no secrets:
// they are in endpoints.json of the data directory.
type note struct {
	PID     int    `json:"pid"`
	DataDir string `json:"data_dir"` // absolute
}

// notesName is the directory of the notes within the state directory.
const notesName = "running"

// Announce lists a running machine in a state directory, so that FindAny finds it from every
// directory. Withdraw removes it from the list.
func Announce(stateDir string, at Endpoints) (withdraw func() error, err error) {
	dir, err := filepath.Abs(at.DataDir)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(note{PID: at.PID, DataDir: dir})
	if err != nil {
		return nil, err
	}
	path := filepath.Join(stateDir, notesName, fmt.Sprintf("%.8x.json", sha256.Sum256([]byte(dir))))
	if err := durable.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if err := durable.WriteFile(path, append(text, '\n'), 0o600); err != nil {
		return nil, err
	}
	return func() error {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}, nil
}

// ErrSeveral is wrapped by the error of FindAny when several machines run.
var ErrSeveral = errors.New("several plumblines are running")

// FindAny returns where the only running machine of those in a state directory is reached. A killed
// machine may be listed; it does not count. The error names the machines if several run.
func FindAny(ctx context.Context, stateDir string) (*Endpoints, error) {
	files, err := filepath.Glob(filepath.Join(stateDir, notesName, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("find the running plumbline: %w", err)
	}
	var running []*Endpoints
	for _, file := range files {
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) { // it has just ended
			continue
		}
		var n note
		if err == nil {
			err = json.Unmarshal(text, &n)
		}
		if err != nil {
			return nil, fmt.Errorf("find the running plumbline: %s: %w: remove the file", file, err)
		}
		at, err := Find(ctx, n.DataDir)
		if errors.Is(err, ErrNotRunning) {
			continue
		}
		if err != nil {
			return nil, err
		}
		running = append(running, at)
	}
	switch len(running) {
	case 0:
		return nil, ErrNotRunning
	case 1:
		return running[0], nil
	}
	var directories []string
	for _, at := range running {
		directories = append(directories, at.DataDir)
	}
	return nil, fmt.Errorf("%w: name one of their data directories with --data: %s", ErrSeveral, strings.Join(directories, ", "))
}
