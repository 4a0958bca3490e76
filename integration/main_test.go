// Package integration_test runs the whole system as its users do: each service is a process,
// with the real broker and the real database, and all access is over HTTP, NATS and SQL.
//
// It owns the faults: what is killed, stopped, tampered with, or published invalid. Package
// checker owns what must hold afterwards. A kill happens at a known point of the work, never
// after a fixed time. The tests wait for conditions, never for a fixed time.
package integration_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/plumbline/plumbline/engine/enginetest"
)

var background = context.Background()

func TestMain(m *testing.M) {
	if config := os.Getenv(nodeVariable); config != "" {
		fmt.Fprintln(os.Stderr, "integration: a node of the broker:", runNode(config))
		os.Exit(1)
	}
	os.Exit(enginetest.Run(func() int {
		code := m.Run()
		if programDir != "" {
			if err := os.RemoveAll(programDir); err != nil {
				fmt.Fprintln(os.Stderr, "integration:", err)
				return max(code, 1)
			}
		}
		return code
	}))
}

// programDir contains the programs under test after the build.
var programDir string

// build builds every command of the repository, with the race detector if the
// tests use it, and without debug information, which takes the linker half of its time.
var build = sync.OnceValue(func() error {
	var err error
	if programDir, err = os.MkdirTemp("", "plumbline-programs-"); err != nil {
		return err
	}
	mains, err := filepath.Glob("../cmd/*/main.go")
	if err != nil {
		return err
	}
	args := []string{"build", "-ldflags=-s -w", "-o", programDir + "/"}
	if raceEnabled {
		args = append(args, "-race")
	}
	for _, main := range mains {
		args = append(args, "./"+filepath.Dir(main))
	}
	if output, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("go %v: %w\n%s", args, err, output)
	}
	return nil
})

// program returns the path of a command's program.
func program(t testing.TB, name string) string {
	t.Helper()
	if err := build(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(programDir, name)
}
