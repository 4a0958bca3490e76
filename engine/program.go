package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Program is the program that the child runs. Exactly one of Library and Binary is set.
type Program struct {
	// Library is the path of libchdb.so.
	Library string
	// Host is the path of the plumbline-engine that runs Library; empty if this binary does.
	Host string
	// Binary is the path of an official clickhouse executable.
	Binary string
}

// Variable is the name of the environment variable that overrides the look-up: the path
// of a libchdb.so or of a clickhouse executable.
const Variable = "PLUMBLINE_ENGINE"

// oldestBinary is the first major version whose SQL and settings are relied on. Locate skips
// an older clickhouse on PATH.
const oldestBinary = 26

// Options configures where the engine's library is kept. The zero value is right for
// everyday use.
type Options struct {
	// CacheDir holds installed libraries, one directory for each version; default
	// plumbline/engine in the user's cache directory.
	CacheDir string
	// Progress is called with a short message before a slow step. Nil logs it.
	Progress func(message string)
	// Fetching, if it is not nil, is called when the download of size bytes begins. fetched measures how
	// many bytes have come; end is called when no more will come.
	Fetching func(size int64, fetched func() int64) (end func())
}

func (o *Options) complete() error {
	if o.Progress == nil {
		o.Progress = func(message string) { slog.Info("installing the engine", "step", message) }
	}
	if o.Fetching == nil {
		o.Fetching = func(int64, func() int64) func() { return func() {} }
	}
	if o.CacheDir != "" {
		return nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return fmt.Errorf("engine: find the user's cache directory: %w", err)
	}
	o.CacheDir = filepath.Join(cache, "plumbline", "engine")
	return nil
}

// Locate finds the program, in this order: the file that PLUMBLINE_ENGINE names; an
// official clickhouse on PATH, which its owner chose and keeps up to date; the pinned library
// in the cache; the pinned library, installed by npm. The order does not depend on what an
// earlier run has left behind.
func Locate(ctx context.Context, opts Options) (Program, error) {
	if path := os.Getenv(Variable); path != "" {
		return named(path)
	}
	if path, err := exec.LookPath("clickhouse"); err == nil && recent(ctx, path) {
		return Program{Binary: path}, nil
	}
	host, err := findHost() // before a long download
	if err != nil {
		return Program{}, err
	}
	library, err := Install(ctx, opts)
	return Program{Library: library, Host: host}, err
}

func named(path string) (Program, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Program{}, fmt.Errorf("engine: %s=%s: there is no such file; it must name a libchdb.so or a clickhouse executable, "+
			"or be unset to use the pinned engine", Variable, path)
	case err != nil:
		return Program{}, fmt.Errorf("engine: %s: %w", Variable, err)
	case info.Mode().IsRegular() && strings.Contains(filepath.Base(path), ".so"):
		host, err := findHost()
		return Program{Library: path, Host: host}, err
	case info.Mode().IsRegular() && info.Mode()&0o111 != 0:
		return Program{Binary: path}, nil
	}
	return Program{}, fmt.Errorf("engine: %s=%s: neither a shared library (.so) nor an executable file", Variable, path)
}

var versionPattern = regexp.MustCompile(`version (\d+)\.\d+`)

// recent reports whether the clickhouse executable is new enough to be used.
func recent(ctx context.Context, path string) bool {
	out, err := exec.CommandContext(ctx, path, "local", "--version").CombinedOutput()
	if err != nil {
		slog.Warn("clickhouse on PATH does not run; using the pinned engine", "path", path, "error", err)
		return false
	}
	if v := versionPattern.FindSubmatch(out); v != nil {
		if major, err := strconv.Atoi(string(v[1])); err == nil && major >= oldestBinary {
			return true
		}
	}
	slog.Warn("clickhouse on PATH is too old; using the pinned engine", "path", path, "oldest_major", oldestBinary)
	return false
}
