package integration_test

import (
	"net"
	"net/url"
	"sync"
	"testing"
)

// proxy is a proxy between services and a server that can reset connections after any byte.
type proxy struct {
	t        testing.TB
	target   string
	listener net.Listener

	mu    sync.Mutex
	left  int // bytes that pass before the next cut; used only if armed
	armed bool
	cuts  int
}

// newProxy listens until the test ends. It forwards to the address that was passed to through.
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

// through starts to forward to the host of an address, and returns the address with the
// proxy as its host.
func (p *proxy) through(address string) string {
	p.t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		p.t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.target == "" { // called once for every service
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
		if err != nil { // the server is unavailable, which the client must see too
			_ = client.Close()
			continue
		}
		go p.pass(client, server)
		go p.pass(server, client)
	}
}

// cutAfter resets the connection that carries the n-th byte from now on, counted over all
// connections and both directions. The bytes up to it are forwarded.
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

// take returns how many of the next bytes pass, and whether the connection ends after them.
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

// pass forwards one direction.
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

// reset makes the end of a connection an error on the other side.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
