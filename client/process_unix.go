//go:build unix

package client

import (
	"errors"
	"syscall"
)

// runs reports whether a process may exist.
func runs(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
