package main

import (
	"debug/elf"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/plumbline/plumbline/engine"
)

// plumbline is a static program, so that it runs on systems without glibc. It starts the engine with a program of its
// own, which is not static.
func TestStaticTool(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs")
	}
	built := t.TempDir()
	if err := buildPrograms(built, ".", "../plumbline-engine"); err != nil {
		t.Fatal(err)
	}
	if needsLoader(t, filepath.Join(built, "plumbline")) {
		t.Error("plumbline needs a dynamic loader")
	}
	if runtime.GOARCH != "amd64" {
		t.Skipf("no library of the engine is pinned for %s", runtime.GOARCH)
	}
	if !needsLoader(t, filepath.Join(built, "plumbline-engine")) {
		t.Error("plumbline-engine needs no dynamic loader: it can be part of plumbline")
	}
	alone := filepath.Join(built, "alone")
	if err := errors.Join(os.Mkdir(alone, 0o700), os.Link(filepath.Join(built, "plumbline"), filepath.Join(alone, "plumbline"))); err != nil {
		t.Fatal(err)
	}
	library, err := engine.Install(t.Context(), engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, scripts("static", func(env *testscript.Env) error {
		env.Setenv("BUILT", built)
		env.Setenv("LIBRARY", library)
		if err := os.Chmod(filepath.Join(env.WorkDir, "path", "plumbline-engine"), 0o700); err != nil {
			return err
		}
		return setUp(env)
	}))
}

// needsLoader reports whether a program needs a dynamic loader, as that of the C library.
func needsLoader(t *testing.T, program string) bool {
	t.Helper()
	file, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, part := range file.Progs {
		if part.Type == elf.PT_INTERP || part.Type == elf.PT_DYNAMIC {
			return true
		}
	}
	return false
}
