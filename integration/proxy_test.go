package integration_test

import (
	"net"
	"net/url"
	"sync"
	"testing"
)

// proxy is between services and a server, and breaks connections between two bytes.
type proxy struct {
	t        testing.TB
	target   string
	listener net.Listener

	mu    sync.Mutex
	left  int // bytes that pass before the next cut; only where armed
	armed bool
	cuts  int
}

// newProxy listens until the test ends. What it passes on goes to throughProxy's address.
func newProxy(t testing.TB) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, listener: listener}
	t.Cleanup(func() { _ = listener.Close() })
	return p
}

// through begins to pass on to the host of an address, and returns the address with the
// proxy as its host.
func (p *proxy) through(address string) string {
	p.t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		p.t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.target == "" { // every service asks once
		p.target = u.Host
		go p.accept()
	}
	u.Host = p.listener.Addr().String()
	return u.String()
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil { // the server is away, as the client sees it, too
			_ = client.Close()
			continue
		}
		go p.pass(client, server)
		go p.pass(server, client)
	}
}

// cutAfter resets the connection that carries the n-th byte from now on, of all
// connections and both directions. The bytes up to it arrive.
func (p *proxy) cutAfter(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left, p.armed = n, true
}

// done returns how many connections were cut.
func (p *proxy) done() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cuts
}

// take returns how many of the next bytes pass, and whether the connection ends there.
func (p *proxy) take(bytes int) (pass int, cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.armed || p.left > bytes {
		p.left -= bytes
		return bytes, false
	}
	p.armed = false
	p.cuts++
	return p.left, true
}

// pass passes on one direction.
func (p *proxy) pass(from, to net.Conn) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 16<<10)
	for {
		n, err := from.Read(buffer)
		pass, cut := p.take(n)
		if _, failed := to.Write(buffer[:pass]); failed != nil || err != nil {
			return
		}
		if cut {
			reset(from)
			reset(to)
			return
		}
	}
}

// reset makes the end of a connection an error at the other side.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
