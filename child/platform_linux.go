package child

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"syscall"
)

// selfPath returns a path of the running image itself, which stays valid when the file at
// the binary's own path is replaced or removed.
func selfPath() (string, error) { return "/proc/self/exe", nil }

// commandAttr makes the kernel end a foreign command with its parent, because a foreign
// command does not read the orphan pipe.
func commandAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}

// Reserve keeps a port for one child, also while the child is down: until the reservation is
// closed or this process ends, no process gets the port from FreePort, and Reserve returns
// ErrPortTaken for it.
//
// The reservation is a socket with an abstract name. Such names are unique in a network
// namespace, as ports are, and the kernel frees them when their process ends.
func Reserve(port int) (io.Closer, error) {
	socket, err := net.ListenUnixgram("unixgram", reservation(port))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("the port %d is taken: %w", port, ErrPortTaken)
	}
	if err != nil {
		return nil, fmt.Errorf("reserve the port %d: %w", port, err)
	}
	return socket, nil
}

// reserved reports whether a port is reserved. It takes nothing, so two processes may ask at the same time.
func reserved(port int) bool {
	socket, err := net.DialUnix("unixgram", nil, reservation(port))
	if err != nil {
		return false
	}
	_ = socket.Close() // nothing was sent
	return true
}

func reservation(port int) *net.UnixAddr {
	return &net.UnixAddr{Net: "unixgram", Name: "@plumbline/port/" + strconv.Itoa(port)}
}
