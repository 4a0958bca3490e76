//go:build unix && !linux

package child

import (
	"io"
	"os"
	"syscall"
)

func selfPath() (string, error) { return os.Executable() }

// commandAttr returns attributes without a tie to the parent: this system has none.
func commandAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// Reserve reserves nothing: this system has no names that end with their process.
func Reserve(int) (io.Closer, error) { return io.NopCloser(nil), nil }

func reserved(int) bool { return false }
