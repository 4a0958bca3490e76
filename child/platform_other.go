//go:build unix && !linux

package child

import (
	"os"
	"syscall"
)

func selfPath() (string, error) { return os.Executable() }

// commandAttr cannot tie a foreign command to its parent on this system.
func commandAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
