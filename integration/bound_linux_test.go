package integration_test

import (
	"os/exec"
	"syscall"
)

// bind makes a service end with the test process, also when that is killed.
func bind(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
