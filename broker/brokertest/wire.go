package brokertest

import (
	"bytes"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// Wire is a proxy between one client and a broker. A frozen wire makes the client look like a
// stopped process; a cut wire makes it look like a process that was killed or has lost its
// network; an expelled client is told that it violated the protocol.
type Wire struct {
	t        testing.TB
	broker   *url.URL
	listener net.Listener
	gate     sync.RWMutex // locked while the wire is frozen
	running  sync.WaitGroup

	mu     sync.Mutex
	cut    bool
	expels bool
	pass   func(client io.Reader, server io.Writer) // nil: what the client sends is copied
	ends   []net.Conn
}

// NewWire makes a wire to the broker at an address. It is closed when the test ends.
func NewWire(t testing.TB, broker string) *Wire {
	t.Helper()
	at, err := url.Parse(broker)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &Wire{t: t, broker: at, listener: listener}
	w.running.Go(w.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		w.Cut()
		w.running.Wait()
	})
	return w
}

// URL returns the broker's address through the wire.
func (w *Wire) URL() string {
	u := *w.broker
	u.Host = w.listener.Addr().String()
	return u.String()
}

// Freeze holds all data in both directions, until Thaw.
func (w *Wire) Freeze() { w.gate.Lock() }

// Thaw passes on the data that was held.
func (w *Wire) Thaw() { w.gate.Unlock() }

// Cut closes the client's connections, and every new one, until Mend.
func (w *Wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = true
	w.closeEnds()
}

// Forward makes forward pass on what the client sends over later connections.
func (w *Wire) Forward(forward func(client io.Reader, server io.Writer)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pass = forward
}

func (w *Wire) closeEnds() {
	for _, end := range w.ends {
		_ = end.Close()
	}
	w.ends = nil
}

// Expel closes the client's connections, and answers every new one with an error that ends it
// permanently. A real broker does so only if the client violates the protocol.
func (w *Wire) Expel() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expels = true
	w.closeEnds()
}

// Mend allows the client to connect again.
func (w *Wire) Mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = false
}

func (w *Wire) accept() {
	for {
		client, err := w.listener.Accept()
		if err != nil {
			return
		}
		w.connect(client)
	}
}

func (w *Wire) connect(client net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut {
		_ = client.Close()
		return
	}
	server, err := net.Dial("tcp", w.broker.Host)
	if err != nil {
		_ = client.Close()
		return
	}
	w.ends = append(w.ends, client, server)
	pass, expels := w.pass, w.expels
	w.running.Go(func() {
		if pass == nil {
			w.relay(client, server, false)
			return
		}
		defer func() { _, _ = client.Close(), server.Close() }()
		pass(client, server)
	})
	w.running.Go(func() { w.relay(server, client, expels) })
}

// relay copies data from one end to the other, and closes both when either ends. If it expels the
// client, an error follows the PONG that ends the broker's greeting.
func (w *Wire) relay(from, to net.Conn, expels bool) {
	defer func() { _, _ = from.Close(), to.Close() }()
	chunk := make([]byte, 32<<10)
	for {
		n, err := from.Read(chunk)
		if err != nil {
			return
		}
		w.gate.RLock()
		_, err = to.Write(chunk[:n])
		if err == nil && expels && bytes.HasSuffix(chunk[:n], []byte("PONG\r\n")) {
			_, err = to.Write([]byte("-ERR 'Maximum Control Line Exceeded'\r\n"))
		}
		w.gate.RUnlock()
		if err != nil {
			return
		}
	}
}
