package child

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync/atomic"
)

// Ports for children lie below those that systems give to outgoing connections (Linux:
// from 32,768, others: from 49,152). A client that dials while a child is away could
// otherwise be given the child's own port: the child would not start again, and the
// client would talk to itself.
const (
	firstPort = 20_000
	portCount = 12_000
	portTries = 100
)

// nextPort makes the ports of one process differ. It starts anywhere, so that two
// processes rarely try the same port at the same time.
var nextPort = func() *atomic.Uint32 {
	var n atomic.Uint32
	n.Store(rand.Uint32N(portCount))
	return &n
}()

// FreePort returns a TCP port of host on which nobody listens now: wanted when it is not
// 0 and free, else another one, a different one with each call. Somebody else can take it
// before the child listens.
func FreePort(host string, wanted int) (port int, err error) {
	for range portTries {
		if port = wanted; port == 0 {
			port = firstPort + int(nextPort.Add(1)%portCount)
		}
		wanted = 0
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port))); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("find a free port: %w", err)
}
