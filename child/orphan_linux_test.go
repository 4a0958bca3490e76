package child_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/plumbline/plumbline/child"
)

func init() { child.Register("parent", parent) }

// parent supervises the child that args describe, and does nothing else.
func parent(ctx context.Context, args []string) error {
	cfg := child.Config{
		Name: "grandchild", Self: args[1], Command: args[2], Args: args[3:],
		Output: filepath.Join(args[0], "grandchild.out"),
	}
	p, err := child.Start(ctx, cfg)
	if err != nil {
		return err
	}
	<-ctx.Done()
	return p.Stop(context.Background())
}

// When a parent is killed with SIGKILL, its child ends too, whether a copy of this binary or a
// foreign command.
func TestNoChildOutlivesItsParent(t *testing.T) {
	t.Run("self", func(t *testing.T) {
		testOrphan(t, func(pidFile string) []string {
			return []string{"well-behaved", "", pidFile, pidFile + ".ended"}
		})
	})
	t.Run("command", func(t *testing.T) {
		testOrphan(t, func(pidFile string) []string {
			return []string{"", "/bin/sh", "-c", fmt.Sprintf("echo $$ > %[1]s.tmp; mv %[1]s.tmp %[1]s; exec sleep 1000", pidFile)}
		})
	})
}

func testOrphan(t *testing.T, grandchild func(pidFile string) []string) {
	dir := t.TempDir()
	pidFile := filepath.Join(dir, "pid")
	p := start(t, child.Config{
		Name: "parent", Self: "parent", Args: append([]string{dir}, grandchild(pidFile)...),
		Output: filepath.Join(dir, "parent.out"), Ready: exists(pidFile),
		Logger: slog.New(slog.DiscardHandler),
	})
	text, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	grandchildEnd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(grandchildEnd)
	if err := unix.Kill(p.Pid(), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := awaitExit(grandchildEnd); err != nil {
		t.Errorf("the grandchild %d did not end after its parent: %v", pid, err)
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
