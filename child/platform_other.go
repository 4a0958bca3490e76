//go:build unix && !linux

package child

import (
	"os"
	"syscall"
)

func selfPath() (string, error) { return os.Executable() }

// commandAttr returns attributes without a tie to the parent: this system has none.
func commandAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
