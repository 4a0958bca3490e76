package child

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
)

// Reserve keeps an address for one child, also while the child is down: until the reservation is
// closed or this process ends, Reserve returns ErrPortTaken for it in every process.
//
// The reservation is a socket with an abstract name. Such names are unique in a network
// namespace, as ports are, and the kernel frees them when their process ends.
func Reserve(address string) (io.Closer, error) {
	socket, err := net.ListenPacket("unixgram", "@plumbline/"+address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("the address %s is taken: %w", address, ErrPortTaken)
	}
	if err != nil {
		return nil, fmt.Errorf("reserve the address %s: %w", address, err)
	}
	return socket, nil
}
