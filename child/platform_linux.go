package child

import "syscall"

// selfPath names the running image itself, which stays right when the file at
// its path was replaced or removed in the meantime.
func selfPath() (string, error) { return "/proc/self/exe", nil }

// commandAttr makes the kernel end a foreign command with its parent: it knows
// nothing of the orphan pipe.
func commandAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
