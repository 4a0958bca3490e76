package child

import "syscall"

// selfPath returns a path of the running image itself, which stays valid when the file at
// the binary's own path is replaced or removed.
func selfPath() (string, error) { return "/proc/self/exe", nil }

// commandAttr makes the kernel end a foreign command with its parent, because a foreign
// command does not read the orphan pipe.
func commandAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
