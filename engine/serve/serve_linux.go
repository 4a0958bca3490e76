package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/unix"

	"github.com/plumbline/plumbline/child"
	"github.com/plumbline/plumbline/engine/protocol"
	"github.com/plumbline/plumbline/pipeline/durable"
)

func init() { child.Register(protocol.Child, serve) }

// The library contains a clickhouse-local that can open listeners and then works as a
// ClickHouse server. It reads a file of statements that opens them, and then a pipe. While
// the pipe is open, the session waits idle. The statements written to the pipe before it is
// closed are the session's last statements.
const (
	openListeners  = "SYSTEM START LISTEN HTTP;\nSYSTEM START LISTEN TCP;\n"
	closeListeners = "SYSTEM STOP LISTEN TCP;\nSYSTEM STOP LISTEN HTTP;\n"

	typingInterval = 10 * time.Millisecond
)

// serve is the body of the child process. It returns when the server has ended. That is an error
// unless ctx ended.
func serve(ctx context.Context, words []string) error {
	args, err := protocol.Parse(words)
	if err != nil {
		return err
	}
	library, dir := args.Library, args.Dir
	script := filepath.Join(dir, "start.sql")
	if err := durable.WriteFile(script, []byte(openListeners), 0o600); err != nil {
		return fmt.Errorf("engine: write the start script: %w", err)
	}
	signal.Ignore(unix.SIGXFSZ) // a write beyond the file's size limit fails, as on a full disk
	session, err := openSession()
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	outcome := make(chan error, 1)
	go func() {
		select {
		case <-ctx.Done():
			outcome <- session.end(ended)
		case <-ended:
			outcome <- errors.New("engine: the server exited unexpectedly")
		}
	}()
	err = run(library, []string{
		"clickhouse-local", "--interactive",
		"--config-file", filepath.Join(dir, "config.xml"),
		"--queries-file", script,
		"--queries-file", fmt.Sprintf("/proc/self/fd/%d", session.reader.Fd()),
	})
	close(ended)
	return errors.Join(err, <-outcome)
}

// run calls the library's command line and returns when it returns. Its result does not
// indicate a failure to start, so run ignores it.
func run(library string, args []string) error {
	handle, err := purego.Dlopen(library, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return fmt.Errorf("engine: load the ClickHouse library: %w", err)
	}
	symbol, err := purego.Dlsym(handle, "chdb_query_cmdline")
	if err != nil {
		return fmt.Errorf("engine: %s is not a libchdb of the pinned version: %w", library, err)
	}
	var commandLine func(argc int32, argv unsafe.Pointer) uintptr
	purego.RegisterFunc(&commandLine, symbol)
	argv := make([]*byte, len(args)+1) // C needs a null pointer at the end
	for i, arg := range args {
		argv[i] = unsafe.StringData(arg + "\x00")
	}
	commandLine(int32(len(args)), unsafe.Pointer(unsafe.SliceData(argv)))
	runtime.KeepAlive(argv)
	return nil
}

// session controls the library's own session. It owns the pipe from which the session reads
// statements, and the terminal that is the session's standard input.
type session struct {
	reader, writer *os.File
	terminal       *os.File
}

func openSession() (*session, error) {
	s := &session{}
	var err error
	if s.terminal, err = terminalOnStdin(); err != nil {
		return nil, fmt.Errorf("engine: put a terminal on standard input: %w", err)
	}
	if s.reader, s.writer, err = os.Pipe(); err != nil {
		return nil, fmt.Errorf("engine: open the pipe for statements: %w", err)
	}
	return s, nil
}

// end makes the library's session return. It writes the last statements, closes the pipe,
// and types Ctrl-D at the prompt that follows. No event signals the prompt, and input before
// the prompt is discarded, so end types Ctrl-D repeatedly until the session has ended.
func (s *session) end(ended <-chan struct{}) error {
	_, err := s.writer.WriteString(closeListeners)
	if err := errors.Join(err, s.writer.Close()); err != nil {
		return fmt.Errorf("engine: write the last statements: %w", err)
	}
	tick := time.NewTicker(typingInterval)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return nil
		case <-tick.C:
		}
		if _, err := s.terminal.Write([]byte{ctrlD}); err != nil {
			return fmt.Errorf("engine: end the session: %w", err)
		}
	}
}

const ctrlD = 4

// terminalOnStdin replaces standard input with a pseudo terminal and returns its
// other end. With any other standard input, this release of the library installs a
// handler that ends the process on any exception in a connection, such as a few
// bytes of garbage on a port (ClickHouse issue 115666).
func terminalOnStdin() (*os.File, error) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	fd := int(master.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, fmt.Errorf("number of the terminal: %w", err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, fmt.Errorf("unlock the terminal: %w", err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	defer slave.Close()
	if err := unix.Dup3(int(slave.Fd()), 0, 0); err != nil {
		return nil, fmt.Errorf("duplicate onto standard input: %w", err)
	}
	return master, nil
}
