// Package clientstest gives tests the Python and the TypeScript client, ready to be used.
//
// It owns the build of the TypeScript client: npm fetches the locked compiler, once, and tsc writes
// clients/typescript/dist, again only when a source has changed. It does not own what the
// clients do. The tests of several packages may use it at the same time.
//
// Invariant: a missing interpreter or a failed fetch fails the test and says what to do. README
// lists python3 and npm among the requirements, so no test is skipped for want of them.
package clientstest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/plumbline/plumbline/pipeline/durable"
)

// Dir returns clients/language of this repository.
func Dir(t testing.TB, language string) string {
	t.Helper()
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		t.Fatal("the place of clients/clientstest is unknown: run the tests without -trimpath")
	}
	return filepath.Join(filepath.Dir(filepath.Dir(file)), language)
}

// Python returns a command that runs Python with package plumbline on its path. Its directory is clients/python.
func Python(t testing.TB, arguments ...string) *exec.Cmd {
	t.Helper()
	interpreter, err := exec.LookPath("python3")
	if err != nil {
		t.Fatalf("the Python client is tested with python3, which README requires: %v", err)
	}
	dir := Dir(t, "python")
	cmd := exec.Command(interpreter, arguments...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PYTHONPATH="+dir, "PYTHONDONTWRITEBYTECODE=1")
	return cmd
}

// Node returns a command that runs Node.js, after the TypeScript client is built. Its directory is
// clients/typescript.
func Node(t testing.TB, arguments ...string) *exec.Cmd {
	t.Helper()
	interpreter, err := exec.LookPath("node")
	if err != nil {
		t.Fatalf("the TypeScript client is tested with Node.js 20 or newer, which comes with npm, which README requires: %v", err)
	}
	dir := Dir(t, "typescript")
	if err := build(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(interpreter, arguments...)
	cmd.Dir = dir
	return cmd
}

// Link makes "plumbline" importable for the scripts in a directory: dir/node_modules/plumbline is the
// built client.
func Link(t testing.TB, dir string) {
	t.Helper()
	Node(t)
	modules := filepath.Join(dir, "node_modules")
	if err := os.MkdirAll(modules, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(Dir(t, "typescript"), filepath.Join(modules, "plumbline")); err != nil {
		t.Fatal(err)
	}
}

// build compiles the client unless dist was made of these sources.
func build(ctx context.Context, dir string) (err error) {
	lock, err := durable.Await(ctx, filepath.Join(dir, ".build.lock"), "the build of the TypeScript client")
	if err != nil {
		return fmt.Errorf("build the TypeScript client: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	for _, step := range []struct {
		makes   string   // a directory
		from    []string // patterns of files
		command []string
	}{
		{"node_modules", []string{"package-lock.json"}, []string{"npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"}},
		{"dist", []string{"package-lock.json", "tsconfig.json", "src/*.ts"}, []string{"node", "node_modules/typescript/bin/tsc"}},
	} {
		sum, err := digest(dir, step.from)
		if err != nil {
			return fmt.Errorf("build the TypeScript client: %w", err)
		}
		stamp := filepath.Join(dir, step.makes, ".made-from")
		if made, err := os.ReadFile(stamp); err == nil && bytes.Equal(made, sum) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, step.makes)); err != nil {
			return fmt.Errorf("build the TypeScript client: %w", err)
		}
		cmd := exec.CommandContext(ctx, step.command[0], step.command[1:]...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build the TypeScript client: %v in %s: %w\n%s\nREADME requires npm and its registry (or a mirror in npm's settings)",
				step.command, dir, err, out)
		}
		if err := os.WriteFile(stamp, sum, 0o644); err != nil {
			return fmt.Errorf("build the TypeScript client: %w", err)
		}
	}
	return nil
}

// digest returns a digest of files, in hexadecimal digits.
func digest(dir string, patterns []string) ([]byte, error) {
	var files []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	sum := sha256.New()
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(sum, "%s %d\n", filepath.Base(file), len(text))
		sum.Write(text)
	}
	return []byte(hex.EncodeToString(sum.Sum(nil))), nil
}
