package engine

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/plumbline/plumbline/pipeline/durable"
)

// The lock file pins the package's integrity; npm refuses anything else.
var (
	//go:embed package.json
	packageJSON []byte
	//go:embed package-lock.json
	packageLockJSON []byte
)

// release is one build of the library. The size and the checksum of the unpacked file are
// a second check, independent of npm.
type release struct {
	version string
	npmName string
	packed  int64 // size of the download, to the megabyte
	size    int64
	sha256  string
}

var pinned = map[string]release{
	"linux/amd64": {
		version: "26.7.3-stable.1",
		npmName: "@chdb/lib-linux-x64-gnu",
		packed:  178_000_000,
		size:    566330096,
		sha256:  "36ad4e999882821ef13cf2d0f52c93f48e6ee1b4498b35a201c23ce4b8d15bf5",
	},
}

const libraryName = "libchdb.so"

// Install returns the path of the pinned library and fetches it with npm if
// the cache has none. Many processes may call it at the same time: one fetches,
// the others wait. Size and checksum are verified before the library appears in
// the cache; later calls verify only its size.
func Install(ctx context.Context, opts Options) (string, error) {
	if err := opts.complete(); err != nil {
		return "", err
	}
	platform := runtime.GOOS + "/" + runtime.GOARCH
	rel, ok := pinned[platform]
	if !ok {
		return "", fmt.Errorf("engine: no pinned ClickHouse library exists for %s: give the DSN of a ClickHouse server, "+
			"put an official clickhouse binary on PATH, or set %s to one", platform, Variable)
	}
	path := filepath.Join(opts.CacheDir, rel.version, libraryName)
	if rel.sizeMatches(path) {
		return path, nil
	}
	if err := rel.install(ctx, opts, path); err != nil {
		return "", fmt.Errorf("engine: install %s %s: %w", rel.npmName, rel.version, err)
	}
	return path, nil
}

func (r release) sizeMatches(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Size() == r.size
}

func (r release) install(ctx context.Context, opts Options, path string) (err error) {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return fmt.Errorf("npm is not on PATH, and it fetches the library. Do one of these: install npm; "+
			"give the DSN of a ClickHouse server; put an official clickhouse binary on PATH; set %s to a %s or a clickhouse binary",
			Variable, libraryName)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	lock, err := durable.Await(ctx, filepath.Join(opts.CacheDir, "install.lock"), "the installation of the engine")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if r.sizeMatches(path) { // another process installed it first
		return nil
	}
	return r.fetch(ctx, npm, opts, path)
}

// fetch unpacks the package next to its destination, verifies the library and
// renames it into place. The caller holds the lock, so an existing staging
// directory was left by a process that was killed.
func (r release) fetch(ctx context.Context, npm string, opts Options, path string) (err error) {
	stage := filepath.Join(opts.CacheDir, "staging")
	if err := os.RemoveAll(stage); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(stage)) }()
	opts.Progress(fmt.Sprintf("fetching the ClickHouse library %s (%d MB, once)", r.version, r.packed/1_000_000))
	end := opts.Fetching(r.packed, func() int64 { return largestIn(npmCache(stage)) })
	err = runNPM(ctx, npm, stage)
	end()
	if err != nil {
		return err
	}
	library := filepath.Join(stage, "node_modules", filepath.FromSlash(r.npmName), libraryName)
	opts.Progress("verifying the ClickHouse library")
	if err := r.verify(library); err != nil {
		return err
	}
	if err := durable.Sync(library); err != nil {
		return err
	}
	return durable.Rename(library, path)
}

// runNPM installs the locked package into dir. npm's own copy of the download
// goes to a cache inside dir, which is deleted with it.
func runNPM(ctx context.Context, npm, dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for name, content := range map[string][]byte{"package.json": packageJSON, "package-lock.json": packageLockJSON} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund",
		"--cache", npmCache(dir))
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	return nil
}

// npmCache returns where npm writes what it downloads, as it comes.
func npmCache(stage string) string { return filepath.Join(stage, "npm-cache") }

// largestIn returns the size of the largest file below a directory: that of the one download, which npm writes
// twice at the same time. It ignores what it cannot read: npm moves and removes files meanwhile.
func largestIn(dir string) (size int64) {
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			size = max(size, info.Size())
		}
		return nil
	})
	return size
}

func (r release) verify(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("npm installed no %s (does this system use glibc?)", libraryName)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, f)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); size != r.size || got != r.sha256 {
		return fmt.Errorf("the library is not the pinned one: %d bytes with SHA-256 %s, expected %d bytes with %s",
			size, got, r.size, r.sha256)
	}
	return nil
}
