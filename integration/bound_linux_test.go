package integration_test

import (
	"os/exec"
	"syscall"
)

// bind lets no service outlive a test process that was killed itself.
func bind(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
