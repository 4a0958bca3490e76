package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A command that reads a file of a terabyte, or waits for its standard input, ends on
// the first signal.
func TestReadingEndsOnASignal(t *testing.T) {
	huge := filepath.Join(t.TempDir(), "huge.tar.gz")
	if err := os.WriteFile(huge, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(huge, 1<<40); err != nil { // a sparse file
		t.Fatal(err)
	}
	key := "ef1b6dfc311fb11ea7f10dcc06ff3a8fc64a722ff337df246965979663771fb7"
	for _, arguments := range [][]string{
		{"bundle", "verify", huge},
		{"bundle", "verify", huge, huge},
		{"bundle", "show", huge},
		{"micro", "sign", "https://example.org/", "--dom", huge, "--scanner", key},
	} {
		endsOnSignal(t, arguments, func(_ *os.File, pid int) bool { return readingOf(pid, huge) })
	}
	for _, arguments := range [][]string{{"micro", "verify", "--key", key}, {"bundle", "seal", "-", "--unsigned"}} {
		endsOnSignal(t, arguments, func(in *os.File, _ int) bool {
			left, err := unix.IoctlGetInt(int(in.Fd()), unix.TIOCINQ)
			return err == nil && left == 0
		})
	}
}

// A command that reads a named pipe to which nobody writes ends on the first signal.
func TestReadingAPipeEndsOnASignal(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	const nowhere = "--url=http://127.0.0.1:1"
	for _, arguments := range [][]string{
		{"aap", "eval", pipe}, {"card", "lint", pipe}, {"card", "a2a", "extract", pipe}, {"card", "put", pipe, nowhere},
		{"coherence", "check", pipe, pipe}, {"message", "verify", pipe, nowhere}, {"send", pipe, nowhere},
		{"trace", "mcp", pipe, "--agent", "a", "--card", "c"},
	} {
		endsOnSignal(t, arguments, func(*os.File, int) bool {
			writer, err := os.OpenFile(pipe, os.O_WRONLY, 0) // returns when the command has opened it
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = writer.Close() })
			return true
		})
	}
}

// Waiting until another process opens the other end of a pipe also ends with the context.
func TestOpeningEndsWithTheContext(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := openAny(ctx, pipe, nil)
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, errInterrupted) {
		t.Errorf("opening ended with %v", err)
	}
	writer, err := os.OpenFile(pipe, os.O_RDWR, 0) // unblocks every waiting open
	if err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
}

// endsOnSignal starts the command, waits until it reads, sends SIGTERM once and waits
// for its end.
func endsOnSignal(t *testing.T, arguments []string, reads func(in *os.File, pid int) bool) {
	t.Helper()
	theirs, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(theirs.Close(), in.Close()) }()
	if _, err := in.WriteString(" "); err != nil {
		t.Fatal(err)
	}
	command := exec.Command("plumbline", arguments...)
	var said bytes.Buffer
	command.Stdin, command.Stderr = theirs, &said
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	for !reads(in, command.Process.Pid) && t.Context().Err() == nil {
		time.Sleep(time.Millisecond)
	}
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	_ = command.Wait()
	if command.ProcessState.ExitCode() != exitBad || !strings.Contains(said.String(), errInterrupted.Error()) {
		t.Errorf("%q ended with %v: %s", arguments, command.ProcessState, &said)
	}
}

// readingOf reports whether a process has read from a file.
func readingOf(pid int, path string) bool {
	descriptors := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(descriptors)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if target, err := os.Readlink(filepath.Join(descriptors, e.Name())); err != nil || target != path {
			continue
		}
		info, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%s", pid, e.Name()))
		if err == nil && !strings.HasPrefix(string(info), "pos:\t0\n") {
			return true
		}
	}
	return false
}

// A reader fails at once when its context has ended.
func TestReadersEndWithTheirContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := openPlain(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	endless, writer := io.Pipe()
	in := &interruptible{ctx: ctx, in: endless}
	go func() { _, _ = writer.Write([]byte("ab")) }()
	two := make([]byte, 5)
	if n, err := in.Read(two); err != nil || string(two[:n]) != "ab" {
		t.Fatalf("read %q, error %v", two[:n], err)
	}
	done := make(chan error)
	go func() {
		_, err := in.Read(two)
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, errInterrupted) {
		t.Errorf("a read that was waiting ended with %v", err)
	}
	if _, err := file.Read(two); !errors.Is(err, errInterrupted) {
		t.Errorf("a file was read: error %v", err)
	}
}
