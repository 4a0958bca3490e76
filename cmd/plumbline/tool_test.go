package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// concurrent are the commands that work with several goroutines. Where the tests have the race detector, scripts
// run these with it and the others without it: a program with the detector takes half a second of CPU time to
// start, one without it an eighth of a second, and scripts start some six hundred.
var concurrent = []string{"up", "demo", "bench", "send", "mcp", "check", "replay", "dlq", "webhook"}

// toolDir is the directory with the command plumbline, for PATH, after makeTool. The suite removes it.
var toolDir string

// makeTool makes the command plumbline.
var makeTool = sync.OnceValue(func() (err error) {
	if toolDir, err = os.MkdirTemp("", "plumbline-tool-"); err != nil {
		return err
	}
	self, err := os.Executable() // the test binary is the tool under its name
	if err != nil {
		return err
	}
	if !raceEnabled {
		return os.Symlink(self, filepath.Join(toolDir, "plumbline"))
	}
	plain := filepath.Join(toolDir, "plain")
	if err := buildPrograms(plain, "."); err != nil {
		return err
	}
	detected := filepath.Join(toolDir, "detected", "plumbline")
	choose := fmt.Sprintf("#!/bin/sh\ncase ${1:-} in %s) exec '%s' \"$@\" ;; esac\nexec '%s' \"$@\"\n", strings.Join(concurrent, "|"), detected, filepath.Join(plain, "plumbline"))
	return errors.Join(os.Mkdir(filepath.Dir(detected), 0o700), os.Symlink(self, detected), os.WriteFile(filepath.Join(toolDir, "plumbline"), []byte(choose), 0o700))
})

// buildPrograms builds programs into a directory as make build does, without the race detector and the C library.
func buildPrograms(dir string, packages ...string) error {
	build := exec.Command("go", append([]string{"build", "-buildvcs=false", "-ldflags=-s -w", "-o", dir + "/"}, packages...)...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build %v: %w\n%s", packages, err, output)
	}
	return nil
}
