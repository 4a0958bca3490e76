package integration_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/plumbline/plumbline/child"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
)

// service is one of the services, as a process that can be killed and restarted.
type service struct {
	t       testing.TB
	name    string
	program string
	args    []string
	env     []string
	address string // of its operator's interface
	public  string // of the interface for others, if that is another one

	cmd    *exec.Cmd
	exited chan struct{}
}

// run starts the service; it ends with the test.
func run(t testing.TB, s *service) *service {
	t.Helper()
	s.t = t
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.kill(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// start starts the process. It does not wait until it is ready.
func (s *service) start() error {
	s.cmd = exec.Command(s.program, s.args...)
	s.cmd.Env = s.env
	if len(s.args) == 0 || s.args[0] != "up" { // up refuses it
		// Other packages are tested at the same time. Their load must not slow drift and exporter.
		s.cmd.Env = append([]string{"PLUMBLINE_NICE=0"}, s.env...)
	}
	s.cmd.Stdout, s.cmd.Stderr = s.t.Output(), s.t.Output()
	bind(s.cmd)
	cmd, exited, started := s.cmd, make(chan struct{}), make(chan error)
	s.exited = exited
	go func() {
		// The kernel kills the process when the thread that started it ends (bind). The
		// goroutines that supervise other processes end their threads.
		runtime.LockOSThread()
		defer close(exited)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // cmd.ProcessState has the result
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start %s: %w", s.name, err)
	}
	return nil
}

// kill ends the process with SIGKILL.
func (s *service) kill() error { return s.signal(syscall.SIGKILL) }

// restart kills the process and starts another.
func (s *service) restart() error { return errors.Join(s.kill(), s.start()) }

// signal sends a signal and waits until the process has ended.
func (s *service) signal(sig os.Signal) error {
	if err := s.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s: %w", s.name, err)
	}
	<-s.exited
	return nil
}

// terminate sends SIGTERM and requires a clean end.
func (s *service) terminate() {
	s.t.Helper()
	if err := s.signal(syscall.SIGTERM); err != nil {
		s.t.Error(err)
	}
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		s.t.Errorf("%s ended with exit code %d after SIGTERM", s.name, code)
	}
}

// awaitReady waits until the service reports that it is ready.
func (s *service) awaitReady() {
	s.t.Helper()
	pipelinetest.Await(s.t, s.name+" to be ready", func() bool {
		if s.ended() {
			s.t.Fatalf("%s ended: %s", s.name, s.cmd.ProcessState)
		}
		return s.ready()
	})
}

// ended reports whether the process has ended.
func (s *service) ended() bool {
	select {
	case <-s.exited:
		return true
	default:
		return false
	}
}

// questions is the client for requests to processes that may hang.
var questions = http.Client{Timeout: 10 * time.Second}

// ready reports whether the service is ready.
func (s *service) ready() bool { return s.readiness() == "" }

// readiness returns why the service is not ready; "" if it is ready.
func (s *service) readiness() string {
	answer, err := questions.Get("http://" + s.address + "/readyz")
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode == http.StatusOK {
		return ""
	}
	return fmt.Sprintf("%s %s %v", answer.Status, text, err)
}

// freeAddress returns an address on loopback on which no process listens.
func freeAddress(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", freePort(t))
}

func freePort(t testing.TB) int {
	t.Helper()
	port, err := child.FreePort("127.0.0.1", 0)
	if err != nil {
		t.Fatal(err)
	}
	return port
}
