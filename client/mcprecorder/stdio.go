package mcprecorder

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/plumbline/plumbline/schema/mcp"
)

// Stdio runs an MCP server as a child process and passes on what it and its client write.
type Stdio struct {
	Config  Config
	Command []string  // with its arguments
	Env     []string  // nil: that of this process
	In      io.Reader // from the client
	Out     io.Writer // to the client; closed when the server has ended, if it can be closed
	Err     *os.File  // the server's standard error

	Signals <-chan os.Signal // passed on to the server; may be nil
}

// drain is how long the output of a server is still read after its end, if another process keeps
// it open.
const drain = 2 * time.Second

// Run returns the exit code of the server: 128 and the number of the signal if a signal ended it.
// The error says why the server could not be started.
func (s *Stdio) Run(ctx context.Context) (code int, err error) {
	cmd := exec.Command(s.Command[0], s.Command[1:]...)
	cmd.Env, cmd.Stderr = s.Env, s.Err
	serverIn, toServer, err := os.Pipe()
	if err != nil {
		return 0, fmt.Errorf("run the MCP server: %w", err)
	}
	fromServer, serverOut, err := os.Pipe()
	if err != nil {
		return 0, errors.Join(fmt.Errorf("run the MCP server: %w", err), serverIn.Close(), toServer.Close())
	}
	cmd.Stdin, cmd.Stdout = serverIn, serverOut
	err = cmd.Start()
	err = errors.Join(err, serverIn.Close(), serverOut.Close())
	if err != nil {
		return 0, errors.Join(fmt.Errorf("run the MCP server: %w", err), toServer.Close(), fromServer.Close())
	}
	c := s.Config.conversation()
	out := &lockedLines{to: s.Out}
	ended := make(chan struct{})
	go s.relay(cmd.Process, ended)
	go func() { // it may wait for the client longer than the server lives
		s.clientToServer(ctx, c, toServer, out)
		_ = toServer.Close() // the server has gone, or sees the end of its input
	}()
	passed := make(chan struct{})
	go func() {
		s.serverToClient(c, fromServer, out)
		_ = fromServer.Close() // if the client has gone, the server learns it when it writes
		close(passed)
	}()
	err = cmd.Wait()
	close(ended)
	select {
	case <-passed:
	case <-time.After(drain):
	}
	if closer, ok := s.Out.(io.Closer); ok {
		_ = closer.Close() // the client need not wait for the delivery of traces
	}
	c.abandon("", fmt.Sprintf("the server ended without an answer (%s)", cmd.ProcessState))
	c.end()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		return 0, fmt.Errorf("wait for the MCP server: %w", err)
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return cmd.ProcessState.ExitCode(), nil
}

// relay passes signals on to the server.
func (s *Stdio) relay(server *os.Process, ended <-chan struct{}) {
	for {
		select {
		case sig := <-s.Signals:
			if err := server.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
				s.Config.Report(fmt.Sprintf("pass on %s: %v", sig, err))
			}
		case <-ended:
			return
		}
	}
}

// clientToServer passes the client's lines on. In both directions a line is read before its end is
// passed on: otherwise its answer could be read first.
func (s *Stdio) clientToServer(ctx context.Context, c *conversation, to io.Writer, out *lockedLines) {
	from := newLines(s.In)
	for {
		chunk, complete, err := from.next()
		switch {
		case c.runtime == nil:
			if complete {
				s.read(c.fromClient, from)
			}
			if _, failed := to.Write(chunk); failed != nil {
				return
			}
		case complete:
			if !s.gate(ctx, c, from, to, out) {
				return
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) && !errors.Is(err, os.ErrClosed) {
				s.Config.Report(fmt.Sprintf("read from the client: %v", err))
			}
			return
		}
	}
}

// gate passes a line on if its calls may be made, and answers it otherwise. It reports whether the
// server still reads.
func (s *Stdio) gate(ctx context.Context, c *conversation, from *lines, to io.Writer, out *lockedLines) bool {
	var answer []byte
	switch line := bytes.TrimSpace(from.line); {
	case from.long:
		answer = failure(nil, mcp.CodeInvalid, fmt.Sprintf("the message was not passed on: it has more than %d bytes", maxMessage))
	case len(line) > 0:
		c.fromClient("", line)
		answer = c.decide(ctx, "", line)
	}
	if answer == nil {
		_, err := to.Write(from.line)
		return err == nil
	}
	if len(answer) > 0 {
		out.line(answer)
	}
	return true
}

// serverToClient passes the server's lines on.
func (s *Stdio) serverToClient(c *conversation, fromServer io.Reader, out *lockedLines) {
	from := newLines(fromServer)
	for {
		chunk, complete, err := from.next()
		if complete {
			s.read(c.fromServer, from)
			if from.long {
				c.tooLong()
			}
		}
		if failed := out.chunk(chunk, complete || err != nil); failed != nil {
			return
		}
		if err != nil {
			return // the end, or a pipe of a server that was killed
		}
	}
}

// read reads a line for the record.
func (s *Stdio) read(read func(scope string, message []byte), from *lines) {
	if from.long {
		s.Config.Report(fmt.Sprintf("a message of more than %d bytes was passed on, and is not recorded", maxMessage))
		return
	}
	read("", from.line)
}

// lines reads lines in chunks, and keeps the line that it reads up to maxMessage bytes.
type lines struct {
	from *bufio.Reader
	line []byte // with its end
	long bool   // the line is longer and not kept
	over bool   // the last chunk ended the line
}

func newLines(from io.Reader) *lines { return &lines{from: bufio.NewReaderSize(from, 64<<10)} }

// next returns the next chunk, and whether it completes a line. The last line may have no end.
func (l *lines) next() (chunk []byte, complete bool, err error) {
	if l.over {
		l.line, l.long, l.over = nil, false, false
	}
	chunk, err = l.from.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		err = nil
	} else {
		l.over = len(chunk) > 0
	}
	if len(l.line)+len(chunk) > maxMessage {
		l.line, l.long = nil, true
	}
	if !l.long {
		l.line = append(l.line, chunk...)
	}
	return chunk, l.over || err != nil && len(l.line) > 0, err
}

// lockedLines lets two goroutines write lines to one writer.
type lockedLines struct {
	mu   sync.Mutex
	to   io.Writer
	open bool // a line has begun: its writer holds the lock
}

// chunk writes a part of a line. Only one goroutine may write chunks.
func (l *lockedLines) chunk(chunk []byte, last bool) error {
	if !l.open {
		l.mu.Lock()
		l.open = true
	}
	_, err := l.to.Write(chunk)
	if last || err != nil {
		l.open = false
		l.mu.Unlock()
	}
	return err
}

// line writes a whole line.
func (l *lockedLines) line(line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.to.Write(append(line, '\n')) // the goroutine that passes on the server's lines sees the error
}
