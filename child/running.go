package child

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// running is one process of the child, from start to exit.
type running struct {
	cmd    *exec.Cmd
	orphan *os.File      // the parent's end of the orphan pipe; nil for a foreign command
	exited chan struct{} // closed after the process was reaped and exit was set
	exit   error         // the result of Wait
}

// status describes the exit; valid once exited is closed.
func (r *running) status() string {
	if r.exit == nil {
		return "exit status 0"
	}
	return r.exit.Error()
}

// end requests the end of the process, kills it after the grace period, and waits until it is
// gone. Calling it for a process that is already gone is safe.
func (p *Process) end(r *running) {
	p.requestEnd(r)
	grace := time.NewTimer(p.cfg.Grace)
	defer grace.Stop()
	select {
	case <-r.exited:
	case <-p.hurry:
		p.kill(r, 0)
	case <-grace.C:
		p.kill(r, p.cfg.Grace)
	}
	p.update(func(s *State) { s.Pid, s.Ready = 0, false })
}

func (p *Process) requestEnd(r *running) {
	if r.orphan != nil {
		p.report("close the orphan pipe", r.orphan.Close())
		return
	}
	p.report("ask the child to end", r.cmd.Process.Signal(syscall.SIGTERM))
}

func (p *Process) kill(r *running, after time.Duration) {
	p.log.Warn("child did not end in time and is killed", "after", after)
	p.report("kill the child", r.cmd.Process.Kill())
	<-r.exited
}

func (p *Process) report(doing string, err error) {
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.log.Error("child cannot be ended", "doing", doing, "error", err)
	}
}
