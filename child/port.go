package child

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"sync/atomic"
	"syscall"
)

// Ports for children lie below those that systems assign to outgoing connections (Linux:
// from 32,768, others: from 49,152). Otherwise a client that dials while a child is down could
// be assigned the child's own port: the child would fail to start again, and the client would
// be connected to itself.
const (
	firstPort = 20_000
	portCount = 12_000
	portTries = 100
)

// nextPort makes the ports of one process differ. It starts at a random port, so two
// processes rarely try the same port at the same time.
var nextPort = func() *atomic.Uint32 {
	var n atomic.Uint32
	n.Store(rand.Uint32N(portCount))
	return &n
}()

// FreePort returns a TCP port of host on which no process listens now, and no child will after a
// restart (Config.Listens): wanted if it is not 0 and is free, else another port, a different one
// at each call. Another process can take the port before Start reserves it.
func FreePort(host string, wanted int) (port int, err error) {
	for range portTries {
		if port = wanted; port == 0 {
			port = firstPort + int(nextPort.Add(1)%portCount)
		}
		wanted = 0
		if err = PortFree(host, port); err == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("find a free port: %w", err)
}

// ErrPortTaken says that another process listens on the port, or a child of one that is starting again.
var ErrPortTaken = errors.New("another process listens there, or will when it has started again: end it")

// PortFree returns nil if a child can listen on a TCP port of host. The error contains
// the address.
func PortFree(host string, port int) error {
	address := net.JoinHostPort(host, strconv.Itoa(port))
	reservation, err := Reserve(address)
	if err != nil {
		return err
	}
	return errors.Join(nobodyListens(address), reservation.Close())
}

func nobodyListens(address string) error {
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("the address %s is taken: %w", address, ErrPortTaken)
	}
	if err != nil {
		return fmt.Errorf("listen on %s: %w", address, err)
	}
	return l.Close()
}

// reservations are those of the addresses at which one child listens.
type reservations []io.Closer

// reserveAll reserves all addresses or none.
func reserveAll(addresses []string) (all reservations, err error) {
	for _, address := range addresses {
		reservation, err := Reserve(address)
		if err != nil {
			return nil, errors.Join(err, all.Close())
		}
		all = append(all, reservation)
	}
	return all, nil
}

func (all reservations) Close() (err error) {
	for _, reservation := range all {
		err = errors.Join(err, reservation.Close())
	}
	return err
}
