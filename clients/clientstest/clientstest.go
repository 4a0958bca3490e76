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
	sum, err := sources(dir)
	if err != nil {
		return fmt.Errorf("build the TypeScript client: %w", err)
	}
	stamp := filepath.Join(dir, "dist", ".built")
	if built, err := os.ReadFile(stamp); err == nil && bytes.Equal(built, sum) {
		return nil
	}
	for _, remove := range []string{"dist", "node_modules"} {
		if err := os.RemoveAll(filepath.Join(dir, remove)); err != nil {
			return fmt.Errorf("build the TypeScript client: %w", err)
		}
	}
	for _, step := range [][]string{
		{"npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"},
		{"node", filepath.Join("node_modules", "typescript", "bin", "tsc")},
	} {
		cmd := exec.CommandContext(ctx, step[0], step[1:]...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build the TypeScript client: %v in %s: %w\n%s\nREADME requires npm and its registry (or a mirror in npm's settings)", step, dir, err, out)
		}
	}
	return os.WriteFile(stamp, sum, 0o644)
}

// sources returns a digest of everything that the build depends on, in hexadecimal digits.
func sources(dir string) ([]byte, error) {
	files, err := filepath.Glob(filepath.Join(dir, "src", "*.ts"))
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	for _, file := range append(files, filepath.Join(dir, "package-lock.json"), filepath.Join(dir, "tsconfig.json")) {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(sum, "%s %d\n", filepath.Base(file), len(text))
		sum.Write(text)
	}
	return []byte(hex.EncodeToString(sum.Sum(nil))), nil
}
