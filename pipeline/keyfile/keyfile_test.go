package keyfile

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCreateThenLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "session.key")
	made, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := Load(path)
	if err != nil || !loaded.Equal(made) {
		t.Fatalf("loaded another key, or none: %v", err)
	}
	raw, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(raw, made.Seed()) {
		t.Errorf("the file holds %d bytes that are not the key's: %v", len(raw), err)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("files next to the key: %v, %v", left, err)
	}
}

func TestCreateNeverOverwrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "session.key")
	first, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Create(path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("second creation: %v", err)
	}
	if loaded, err := Load(path); err != nil || !loaded.Equal(first) {
		t.Errorf("the first key is gone: %v", err)
	}
}

func TestLoadRefuses(t *testing.T) {
	directory := t.TempDir()
	write := func(name string, size int, mode os.FileMode) string {
		path := filepath.Join(directory, name)
		if err := os.WriteFile(path, bytes.Repeat([]byte{1}, size), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	zero := write("zero", 32, 0o600)
	if err := os.WriteFile(zero, make([]byte, 32), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct{ path, want string }{
		"missing":   {filepath.Join(directory, "none"), "no such file"},
		"directory": {directory, "not a regular file"},
		"open":      {write("open", 32, 0o644), "chmod 600 '" + filepath.Join(directory, "open") + "'"},
		"group":     {write("group", 32, 0o640), "mode is 0640"},
		"short":     {write("short", 31, 0o600), "exactly 32 raw bytes"},
		"long":      {write("long", 33, 0o600), "exactly 32 raw bytes"},
		"empty":     {write("empty", 0, 0o600), "loss of power"},
		"zero":      {zero, "loss of power"},
	}
	for name, c := range cases {
		if _, err := Load(c.path); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
