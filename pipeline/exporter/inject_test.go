package exporter_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/exporter"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
)

var inject = flag.Bool("inject", false, "run TestInjectedFaults: system calls that fail, with strace")

// durableCalls are the system calls that make files durable, or give them their names.
var durableCalls = []string{"fsync", "linkat", "renameat", "mkdirat", "fchmod"}

// Environment of TestInjectedProcess, which runs in a process of its own.
const (
	injectNATS = "PLUMBLINE_INJECT_NATS"
	injectDSN  = "PLUMBLINE_INJECT_DSN"
	injectDir  = "PLUMBLINE_INJECT_DIR"
	injectRows = "PLUMBLINE_INJECT_ROWS" // largest number of rows of a bundle; empty for the default
)

// Each of the first system calls that make the work durable fails or kills the process. In the
// end there is one whole bundle, recorded once.
func TestInjectedFaults(t *testing.T) {
	if !*inject {
		t.Skip("it runs only with -inject (make inject)")
	}
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Fatal("strace is not installed: apt-get install strace")
	}
	for _, call := range durableCalls {
		for _, fault := range []string{"signal=KILL", "error=EIO", "error=ENOSPC"} {
			for when := 1; when <= 10; when++ {
				expression := fmt.Sprintf("inject=%s:%s:when=%d", call, fault, when)
				t.Run(expression, func(t *testing.T) { newSite(t).surviveInjected(t, strace, expression) })
			}
		}
	}
}

// surviveInjected seals one session with a process under a fault, then lets a process without a
// fault complete its work.
func (s *site) surviveInjected(t *testing.T, strace, expression string) {
	const session = "s"
	s.Register(t, pipelinetest.Card("ac", "a"))
	s.judge(t)
	s.Publish(t, endedSession(session, 3)...)
	ended, kill := s.startInjected(t, strace, expression)
	pipelinetest.Await(t, "the process to end or to seal", func() bool {
		select {
		case <-ended:
			return true
		default:
			return len(s.bundles(t, "a", session)) == 1
		}
	})
	kill()
	<-ended
	log, err := os.ReadFile(filepath.Join(s.dir, "strace.log"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(expression, "error=") && strings.HasSuffix(expression, "when=1") && !bytes.Contains(log, []byte("INJECTED")) {
		t.Errorf("the step with the fault was not reached:\n%s", log)
	}
	stage := s.export(t, nil)
	pipelinetest.Await(t, "the bundle", func() bool { return len(s.bundles(t, "a", session)) == 1 })
	stage.Stop(t)
	files, err := filepath.Glob(filepath.Join(s.dir, "bundles", "*", "*.tar.gz"))
	if err != nil || len(files) != 1 {
		t.Errorf("files %v, error %v", files, err)
	}
	s.check(t, s.bundles(t, "a", session)[0])
}

// startInjected starts the process under the fault. ended is closed when the process and its
// strace have ended, which kill forces.
func (s *site) startInjected(t *testing.T, strace, expression string) (ended chan struct{}, kill func()) {
	t.Helper()
	alive, held, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	faulty := exec.Command(strace, "-f", "-qq", "-o", filepath.Join(s.dir, "strace.log"), "-e", "trace="+strings.Join(durableCalls, ","),
		"-e", expression, os.Args[0], "-test.run", "^TestInjectedProcess$")
	faulty.Env = s.processEnv()
	faulty.ExtraFiles = []*os.File{held} // stays open as long as one of them lives
	faulty.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := errors.Join(faulty.Start(), held.Close()); err != nil {
		t.Fatal(err)
	}
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, alive)
		_ = faulty.Wait() // how it ended does not matter
		_ = alive.Close()
	}()
	group := -faulty.Process.Pid
	return ended, func() {
		if err := syscall.Kill(group, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Error(err)
		}
	}
}

// processEnv returns the environment of TestInjectedProcess.
func (s *site) processEnv() []string {
	return append(os.Environ(), injectNATS+"="+s.Broker.URL(), injectDSN+"="+s.DSN, injectDir+"="+s.dir)
}

// TestInjectedProcess is the process that TestInjectedFaults and TestLongSession start.
func TestInjectedProcess(t *testing.T) {
	dir := os.Getenv(injectDir)
	if dir == "" {
		t.Skip("a process of TestInjectedFaults and TestLongSession")
	}
	cfg := exporter.Default()
	cfg.NATS.URL, cfg.ClickHouse = os.Getenv(injectNATS), config.ClickHouse{DSN: os.Getenv(injectDSN), AllowUnsafe: true} // as the administrator
	cfg.DataDir, cfg.Every, cfg.AdminListen = dir, 20*time.Millisecond, ""
	if rows := os.Getenv(injectRows); rows != "" {
		var err error
		if cfg.RotateRows, err = strconv.Atoi(rows); err != nil {
			t.Fatal(err)
		}
	}
	if err := exporter.Serve(t.Context(), &cfg, pipelinetest.Env(t, "exporter")); err != nil {
		t.Fatal(err)
	}
}
