package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/plumbline/plumbline/child"
	"github.com/plumbline/plumbline/engine"
)

const parentName = "engine-test-parent"

func init() { child.Register(parentName, parent) }

// parent runs an engine in args[0] and writes its process id to args[1].
func parent(ctx context.Context, args []string) error {
	e, err := engine.Start(ctx, engine.Config{DataDir: args[0]})
	if err != nil {
		return err
	}
	conn, err := open(e.AdminDSN())
	if err != nil {
		return err
	}
	for _, statement := range []string{
		"CREATE TABLE kept (v UInt64) ENGINE = MergeTree ORDER BY v", "INSERT INTO kept SELECT number FROM numbers(100)",
	} {
		if err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	if err := os.WriteFile(args[1]+".tmp", fmt.Append(nil, e.Pid()), 0o600); err != nil {
		return err
	}
	if err := os.Rename(args[1]+".tmp", args[1]); err != nil {
		return err
	}
	<-ctx.Done()
	return e.Stop(context.Background())
}

// The engine of a killed parent ends by itself, and the next engine on the same
// data waits for that.
func TestEngineEndsWithItsParent(t *testing.T) {
	dir := t.TempDir()
	data, pidFile := filepath.Join(dir, "data"), filepath.Join(dir, "pid")
	p, err := child.Start(t.Context(), child.Config{
		Name: "parent", Self: parentName, Args: []string{data, pidFile},
		Output: filepath.Join(dir, "out"), Logger: slog.New(slog.DiscardHandler),
		Ready: func(context.Context) error {
			_, err := os.Stat(pidFile)
			return err
		},
		// Only a restart gets here; it would take the directory again.
		Prepare: func() error {
			if _, err := os.Stat(pidFile); err == nil {
				return fmt.Errorf("the parent is started once")
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	var pid int
	text, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(string(text), &pid); err != nil {
		t.Fatal(err)
	}
	orphan, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(orphan)
	if err := unix.Kill(p.Pid(), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := p.Await(t.Context(), func(s child.State) bool { return s.Pid == 0 }); err != nil {
		t.Fatal(err)
	}
	next := startIn(t, data)
	if n := count(t, connect(t, next.ReaderDSN()), "SELECT count() FROM kept"); n != 100 {
		t.Errorf("%d rows of 100 after the parent was killed", n)
	}
	if err := awaitExit(orphan); err != nil {
		t.Errorf("the engine %d did not end after its parent: %v", pid, err)
	}
}

// awaitExit waits until the process of a pidfd has ended, at most 30 s.
func awaitExit(pidfd int) error {
	fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	for {
		switch n, err := unix.Poll(fds, 30_000); {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return err
		case n == 0:
			return context.DeadlineExceeded
		default:
			return nil
		}
	}
}
