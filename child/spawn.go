package child

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// spawn starts one process in a process group of its own: a Ctrl-C at the terminal
// reaches only the parent, which then stops its children in order.
func (p *Process) spawn() (*running, error) {
	output, err := p.openOutput()
	if err != nil {
		return nil, err
	}
	defer output.Close()
	r := &running{exited: make(chan struct{})}
	if r.cmd, err = p.command(); err != nil {
		return nil, err
	}
	r.cmd.Stdout, r.cmd.Stderr = output, output
	r.cmd.Dir, r.cmd.Env = p.cfg.Dir, append(os.Environ(), p.cfg.Env...)
	if err := p.begin(r); err != nil {
		return nil, fmt.Errorf("spawn: %w", err)
	}
	go func() {
		r.exit = r.cmd.Wait()
		close(r.exited)
	}()
	return r, nil
}

func (p *Process) command() (*exec.Cmd, error) {
	if p.cfg.Command != "" {
		cmd := exec.Command(p.cfg.Command, p.cfg.Args...)
		cmd.SysProcAttr = commandAttr()
		return cmd, nil
	}
	self, err := selfPath()
	if err != nil {
		return nil, fmt.Errorf("find this binary: %w", err)
	}
	cmd := exec.Command(self, append([]string{hiddenWord, p.cfg.Self}, p.cfg.Args...)...)
	cmd.Args[0] = os.Args[0]
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd, nil
}

// begin starts the command. A copy of this binary gets the orphan pipe as fd 3.
func (p *Process) begin(r *running) error {
	if p.cfg.Command != "" {
		return r.cmd.Start()
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return err
	}
	defer theirs.Close()
	r.cmd.ExtraFiles = []*os.File{theirs}
	if err := r.cmd.Start(); err != nil {
		return errors.Join(err, ours.Close())
	}
	r.orphan = ours
	return nil
}
