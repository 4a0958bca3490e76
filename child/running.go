package child

import (
	"errors"
	"fmt"
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

// spawn starts one process in a process group of its own: a Ctrl-C at the terminal
// reaches only the parent, which then stops its children in order.
func (p *Process) spawn() (*running, error) {
	output, err := p.openOutput()
	if err != nil {
		return nil, err
	}
	defer output.Close()
	r := &running{exited: make(chan struct{})}
	if p.cfg.Command != "" {
		r.cmd = exec.Command(p.cfg.Command, p.cfg.Args...)
		r.cmd.SysProcAttr = commandAttr()
	} else {
		if r.cmd, err = p.selfCommand(); err != nil {
			return nil, err
		}
		r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		theirs, ours, err := os.Pipe()
		if err != nil {
			return nil, fmt.Errorf("spawn: %w", err)
		}
		defer theirs.Close()
		r.orphan, r.cmd.ExtraFiles = ours, []*os.File{theirs} // fd 3
	}
	r.cmd.Stdout, r.cmd.Stderr = output, output
	r.cmd.Dir, r.cmd.Env = p.cfg.Dir, append(os.Environ(), p.cfg.Env...)
	if err := r.cmd.Start(); err != nil {
		err = fmt.Errorf("spawn: %w", err)
		if r.orphan != nil {
			err = errors.Join(err, r.orphan.Close())
		}
		return nil, err
	}
	go func() {
		r.exit = r.cmd.Wait()
		close(r.exited)
	}()
	return r, nil
}

// selfCommand returns the command that runs Config.Self.
func (p *Process) selfCommand() (*exec.Cmd, error) {
	args := append([]string{hiddenWord, p.cfg.Self}, p.cfg.Args...)
	if p.cfg.Program != "" {
		return exec.Command(p.cfg.Program, args...), nil
	}
	self, err := selfPath()
	if err != nil {
		return nil, fmt.Errorf("find this binary: %w", err)
	}
	cmd := exec.Command(self, args...)
	cmd.Args[0] = os.Args[0]
	return cmd, nil
}

// end requests the end of the process, kills it after the grace period, and waits until it is
// gone. Calling it for a process that is already gone is safe.
func (p *Process) end(r *running) {
	if r.orphan != nil {
		p.report("close the orphan pipe", r.orphan.Close())
	} else {
		p.report("terminate the child", r.cmd.Process.Signal(syscall.SIGTERM))
	}
	grace := time.NewTimer(p.cfg.Grace)
	defer grace.Stop()
	select {
	case <-r.exited:
	case <-p.hurry:
		p.kill(r, "the context of Stop ended")
	case <-grace.C:
		p.kill(r, fmt.Sprintf("it did not end within %s", p.cfg.Grace))
	}
	p.update(func(s *State) { s.Pid, s.Ready = 0, false })
}

func (p *Process) kill(r *running, reason string) {
	p.log.Warn("killing the child", "reason", reason)
	p.report("kill the child", r.cmd.Process.Kill())
	<-r.exited
}

func (p *Process) report(doing string, err error) {
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.log.Error("cannot "+doing, "error", err)
	}
}
