package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/plumbline/plumbline/engine/enginetest"
	"github.com/plumbline/plumbline/pipeline/database"
)

// terminal is a terminal with a process.
type terminal struct {
	t      *testing.T
	master *os.File
	shown  string // since the last expect
}

// openTerminal starts a command on a new terminal.
func openTerminal(t *testing.T, command *exec.Cmd) *terminal {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0) // a deadline needs non-blocking reads
	if err != nil {
		t.Skipf("no terminal can be made here: %v", err)
	}
	master := os.NewFile(uintptr(fd), "/dev/ptmx")
	t.Cleanup(func() { _ = master.Close() })
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	err = errors.Join(err, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0), unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 200}))
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	command.Stdin, command.Stdout, command.Stderr = slave, slave, slave
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	return &terminal{t: t, master: master}
}

// program returns a path below which this test's binary is the command plumbline (TestMain).
func program(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "plumbline")
	self, err := os.Executable()
	if err = errors.Join(err, os.Symlink(self, path)); err != nil {
		t.Fatal(err)
	}
	return path
}

// expect waits until the process has shown a text.
func (x *terminal) expect(text string) {
	x.t.Helper()
	piece := make([]byte, 4096)
	for !strings.Contains(x.shown, text) {
		if err := x.master.SetReadDeadline(time.Now().Add(awaitFor)); err != nil {
			x.t.Fatal(err)
		}
		n, err := x.master.Read(piece)
		x.shown += string(piece[:n])
		if err != nil {
			x.t.Fatalf("%v; waited for %q, shown is\n%s", err, text, x.shown)
		}
	}
	_, x.shown, _ = strings.Cut(x.shown, text)
}

// types types a text, once the prompt is shown.
func (x *terminal) types(text string) {
	x.t.Helper()
	x.expect("> ")
	x.writes(text)
}

// writes types a text.
func (x *terminal) writes(text string) {
	x.t.Helper()
	if _, err := x.master.WriteString(text); err != nil {
		x.t.Fatal(err)
	}
}

// On a terminal sql prompts: for the tables and their comments, for queries of several lines; Ctrl-C
// ends a query on the server and not the prompt. What was typed is kept for the user alone.
func TestPrompt(t *testing.T) {
	e := enginetest.Engine(t)
	if err := database.Migrate(t.Context(), e.AdminDSN()); err != nil {
		t.Fatal(err)
	}
	state := t.TempDir()
	command := exec.Command(program(t), "sql", "--clickhouse-http", "http://"+e.HTTPAddr())
	command.Env = append(os.Environ(), "XDG_STATE_HOME="+state, "TERM=xterm", "PLUMBLINE_CLICKHOUSE_DSN="+e.ReaderDSN())
	x := openTerminal(t, command)

	x.types("\\d\r")
	x.expect("problems_daily")
	x.expect("│ table │ Every trace (AAP section 5)")
	x.types("\\d problems\r")
	x.expect("LOW, MEDIUM, HIGH or CRITICAL")
	x.types("\\d problem\r")
	x.expect(`no table or view has the name "problem"`)
	x.types("SELECT\tcount() + 41 AS n FROM session_sum\t;\r") // a tab divides words, and completes a name
	x.expect("41 │")
	x.types("SELECT toDate('2026-01-02') AS day,\r")
	x.expect("-")
	x.types("unhex('1b5b33316d') AS red;\r")
	x.expect(`2026-01-02 │ \x1b[31m`)
	x.types("SELECT unknown;\r")
	x.expect("UNKNOWN_IDENTIFIER")
	x.types("SELECT sleepEachRow(0.1), 'begun' FROM numbers(100000) SETTINGS max_block_size = 1, function_sleep_max_microseconds_per_block = 0 FORMAT TSV;\r")
	x.expect("SETTINGS")
	d, err := database.Open(database.Config{DSN: e.AdminDSN(), Stage: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	running := func() (n uint64) {
		if err := d.QueryRow(t.Context(), "SELECT count() FROM system.processes WHERE query LIKE 'SELECT sleepEachRow(0.1)%'").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for running() == 0 {
		if t.Context().Err() != nil {
			return
		}
	}
	x.writes("\x03")
	x.expect("stopped")
	if running() != 0 {
		t.Error("the query still runs on the server")
	}
	x.types("\\?\r")
	x.expect("Ctrl-C stops a query on the server")
	x.types("exit\r")
	if err := command.Wait(); err != nil {
		t.Error(err)
	}
	history := filepath.Join(state, "plumbline", historyName)
	text, err := os.ReadFile(history)
	info, err2 := os.Stat(history)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "SELECT toDate('2026-01-02') AS day, ") || info.Mode().Perm() != 0o600 {
		t.Errorf("the history has mode %v and contains\n%s", info.Mode(), text)
	}
}
