package child

import (
	"errors"
	"fmt"
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

// Address is a TCP address of this machine.
type Address struct {
	Host string
	Port int
}

func (a Address) String() string { return net.JoinHostPort(a.Host, strconv.Itoa(a.Port)) }

// PortFree returns nil if a child can listen on a TCP port of host. The error contains
// the address.
func PortFree(host string, port int) error {
	a := Address{host, port}
	if reserved(port) {
		return a.taken()
	}
	return a.nobodyListens()
}

func (a Address) nobodyListens() error {
	l, err := net.Listen("tcp", a.String())
	if errors.Is(err, syscall.EADDRINUSE) {
		return a.taken()
	}
	if err != nil {
		return fmt.Errorf("listen on %s: %w", a, err)
	}
	return l.Close()
}

func (a Address) taken() error { return fmt.Errorf("the address %s is taken: %w", a, ErrPortTaken) }

// reserve reserves the ports of the child's addresses. Where the system does not let it, it reserves none.
func (p *Process) reserve() error {
	for _, a := range p.cfg.Listens {
		reservation, err := Reserve(a.Port)
		switch {
		case errors.Is(err, ErrPortTaken):
			return a.taken()
		case err != nil:
			p.log.Warn("another process may take the child's port while the child is down", "address", a.String(), "error", err)
		default:
			p.reserved = append(p.reserved, reservation)
		}
	}
	return nil
}

// giveBack ends the reservations.
func (p *Process) giveBack() (err error) {
	for _, reservation := range p.reserved {
		err = errors.Join(err, reservation.Close())
	}
	return err
}
