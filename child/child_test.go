package child_test

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"go.uber.org/goleak"

	"github.com/plumbline/plumbline/child"
)

func init() {
	child.Register("well-behaved", wellBehaved)
	child.Register("stubborn", stubborn)
	child.Register("failing", failing)
}

func TestMain(m *testing.M) {
	child.Dispatch()
	goleak.VerifyTestMain(m)
}

// wellBehaved writes its process id to args[0] when it runs, and creates args[1] when it ends
// cleanly.
func wellBehaved(ctx context.Context, args []string) error {
	if err := os.WriteFile(args[0]+".tmp", []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		return err
	}
	if err := os.Rename(args[0]+".tmp", args[0]); err != nil {
		return err
	}
	<-ctx.Done()
	return os.WriteFile(args[1], nil, 0o600)
}

// stubborn touches args[0] and never ends by itself.
func stubborn(_ context.Context, args []string) error {
	if err := os.WriteFile(args[0], nil, 0o600); err != nil {
		return err
	}
	select {}
}

func failing(context.Context, []string) error { return errors.New("no such luck") }

func exists(path string) func(context.Context) error {
	return func(context.Context) error {
		_, err := os.Stat(path)
		return err
	}
}

// config describes a child whose readiness is the file "up" in a fresh
// directory; Prepare removes it before each start.
func config(t *testing.T, self string) (cfg child.Config, up, ended string) {
	dir := t.TempDir()
	up, ended = filepath.Join(dir, "up"), filepath.Join(dir, "ended")
	return child.Config{
		Name: self, Self: self, Args: []string{up, ended},
		Output: filepath.Join(dir, "out"),
		Ready:  exists(up),
		Prepare: func() error {
			if err := os.Remove(up); !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		},
		Logger: slog.New(slog.DiscardHandler),
	}, up, ended
}

func start(t *testing.T, cfg child.Config) *child.Process {
	t.Helper()
	p, err := child.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p
}

func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func TestStopIsClean(t *testing.T) {
	cfg, _, ended := config(t, "well-behaved")
	p := start(t, cfg)
	pid := p.Pid()
	if pid == 0 || !p.State().Ready {
		t.Fatalf("after Start the state is %+v", p.State())
	}
	if err := p.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !gone(pid) || p.Pid() != 0 {
		t.Errorf("process %d is still there after Stop", pid)
	}
	if exists(ended)(t.Context()) != nil {
		t.Error("the child did not end cleanly")
	}
	if err := p.Await(t.Context(), func(s child.State) bool { return s.Ready }); !errors.Is(err, child.ErrStopped) {
		t.Errorf("Await after Stop: error %v", err)
	}
}

func TestCrashIsFollowedByRestart(t *testing.T) {
	cfg, _, _ := config(t, "well-behaved")
	p := start(t, cfg)
	for crash := 1; crash <= 2; crash++ {
		pid := p.Pid()
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		back := func(s child.State) bool { return s.Ready && s.Pid != pid && s.Restarts == crash }
		if err := p.Await(t.Context(), back); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFailedRestartIsTriedAgain(t *testing.T) {
	cfg, _, _ := config(t, "well-behaved")
	starts := 0
	prepare := cfg.Prepare
	cfg.Prepare = func() error {
		if starts++; starts == 2 {
			return errors.New("the disk is away for a moment")
		}
		return prepare()
	}
	p := start(t, cfg)
	if err := syscall.Kill(p.Pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	again := func(s child.State) bool { return s.Ready && s.Restarts == 2 }
	if err := p.Await(t.Context(), again); err != nil {
		t.Fatal(err)
	}
}

// The reason why a restart waits is reported, and the restart is tried again soon.
func TestRestartWaitsForPrepare(t *testing.T) {
	cfg, _, _ := config(t, "well-behaved")
	missing := errors.New("something is missing")
	var fault atomic.Pointer[error]
	prepare := cfg.Prepare
	cfg.Prepare = func() error {
		if err := fault.Load(); err != nil {
			return *err
		}
		return prepare()
	}
	p := start(t, cfg)
	fault.Store(&missing)
	if err := syscall.Kill(p.Pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for restarts := 1; restarts <= 3; restarts++ {
		said := func(s child.State) bool { return s.Restarts >= restarts && errors.Is(s.Fault, missing) }
		if err := p.Await(t.Context(), said); err != nil {
			t.Fatal(err)
		}
	}
	fault.Store(nil)
	if err := p.Await(t.Context(), func(s child.State) bool { return s.Ready && s.Fault == nil }); err != nil {
		t.Fatal(err)
	}
}

// A call of Ready that gets no answer ends with the child, and the end of the child is reported.
func TestReadyCallEndsWithTheProcess(t *testing.T) {
	cfg, _, _ := config(t, "failing")
	cfg.Ready = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	cfg.ReadyTimeout = 24 * time.Hour
	_, err := child.Start(t.Context(), cfg)
	if err == nil || !strings.Contains(err.Error(), "ended before it was ready (exit status 1)") {
		t.Errorf("a child that ended while Ready waited for an answer: error %v", err)
	}
}

func TestFirstStartFailsWithTheLastOutput(t *testing.T) {
	cfg, up, _ := config(t, "failing")
	_, err := child.Start(t.Context(), cfg)
	if err == nil || !strings.Contains(err.Error(), "no such luck") || !strings.Contains(err.Error(), "exit status 1") {
		t.Errorf("a child that fails at once: error %v", err)
	}
	if exists(up)(t.Context()) == nil {
		t.Error("the child was ready")
	}
}

func TestLastLinesAreWholeAndPlain(t *testing.T) {
	printed := strings.Repeat("0123456789abcdef\\n", 200) + "\\033[1mlast\\033[0m\\r\\n"
	_, err := child.Start(t.Context(), child.Config{
		Name: "printer", Command: "/bin/sh", Args: []string{"-c", "printf '" + printed + "'"},
		Output: filepath.Join(t.TempDir(), "out"), Logger: slog.New(slog.DiscardHandler),
		Ready: func(context.Context) error { return errors.New("not yet") },
	})
	if err == nil {
		t.Fatal("a command that only prints was ready")
	}
	_, quoted, _ := strings.Cut(err.Error(), ":\n")
	lines := strings.Split(quoted, "\n")
	if n := len(lines); n < 100 || n > 130 || lines[0] != "0123456789abcdef" || lines[n-1] != "last" {
		t.Errorf("quoted %d lines from %q to %q", n, lines[0], lines[n-1])
	}
}

func TestPermanentErrorEndsTheStart(t *testing.T) {
	cfg, _, _ := config(t, "well-behaved")
	permanent := errors.New("this will never be")
	cfg.Ready = func(context.Context) error { return backoff.Permanent(permanent) }
	if _, err := child.Start(t.Context(), cfg); !errors.Is(err, permanent) {
		t.Errorf("Ready failed permanently: error %v", err)
	}
}

func TestStartEndsWithItsContext(t *testing.T) {
	cfg, _, _ := config(t, "well-behaved")
	ctx, cancel := context.WithCancel(t.Context())
	cfg.Ready = func(context.Context) error {
		cancel()
		return errors.New("never ready")
	}
	if _, err := child.Start(ctx, cfg); !errors.Is(err, context.Canceled) {
		t.Errorf("Start with a cancelled context: error %v", err)
	}
}

func TestStubbornChildIsKilled(t *testing.T) {
	cfg, _, _ := config(t, "stubborn")
	p := start(t, cfg)
	pid := p.Pid()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Stop(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a stop that had to kill the child: error %v", err)
	}
	if !gone(pid) {
		t.Error("a child that ignores the request to end is still there")
	}
}

func TestConfigIsChecked(t *testing.T) {
	for name, cfg := range map[string]child.Config{
		"no output":     {Name: "x", Self: "well-behaved"},
		"nothing to do": {Name: "x", Output: "out"},
		"two things":    {Name: "x", Output: "out", Self: "well-behaved", Command: "/bin/true"},
		"unregistered":  {Name: "x", Output: "out", Self: "nobody"},
		"no function":   {Name: "x", Output: "out", Command: "/bin/true", Program: "/bin/true"},
	} {
		if _, err := child.Start(t.Context(), cfg); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// A function that only another binary has runs in that binary, and ends cleanly with Stop. The other binary
// is a script here, which gives the function another name.
func TestFunctionOfAnotherProgram(t *testing.T) {
	cfg, _, ended := config(t, "elsewhere")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cfg.Program = filepath.Join(t.TempDir(), "other")
	script := "#!/bin/sh\n[ \"$1 $2\" = '__child elsewhere' ] || exit 9\nshift 2\nexec '" + self + "' __child well-behaved \"$@\"\n"
	if err := os.WriteFile(cfg.Program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	p := start(t, cfg)
	if err := p.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if exists(ended)(t.Context()) != nil {
		t.Error("the child did not end cleanly")
	}
}

func TestForeignCommandIsStopped(t *testing.T) {
	p := start(t, child.Config{
		Name: "sleep", Command: "/bin/sleep", Args: []string{"1000"},
		Output: filepath.Join(t.TempDir(), "out"), Logger: slog.New(slog.DiscardHandler),
	})
	pid := p.Pid()
	if err := p.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !gone(pid) {
		t.Error("the command is still there after Stop")
	}
}
