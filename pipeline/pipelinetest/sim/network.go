package sim

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Network simulates the broker for the connections of one process's stream.Client. It implements
// the part of NATS's protocol that publishing needs.
type Network struct {
	process *Process
	batches map[string][]*published // unfinished atomic batches, by id

	mu    sync.Mutex
	conns map[*connection]bool
	down  bool
}

// Network returns the network to the broker. It is closed permanently when a fault of the broker
// kills the process.
func (p *Process) Network() *Network {
	p.world.networked = true
	return &Network{process: p, batches: map[string][]*published{}, conns: map[*connection]bool{}}
}

var errDown = errors.New("connection refused")

// Dial implements stream.Config.Dial.
func (n *Network) Dial(string, string) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down {
		return nil, errDown
	}
	client, server := net.Pipe()
	c := &connection{network: n, Conn: server, subscriptions: map[string]string{}}
	n.conns[c] = true
	go c.serve()
	return client, nil
}

// Close closes every connection and refuses new ones.
func (n *Network) Close() {
	n.mu.Lock()
	n.down = true
	n.mu.Unlock()
	n.Cut()
}

// Cut closes every connection.
func (n *Network) Cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.conns {
		_ = c.Close() // it cannot fail
		delete(n.conns, c)
	}
}

// connection is the broker's end of a connection.
type connection struct {
	net.Conn
	network *Network

	writing sync.Mutex

	mu            sync.Mutex
	subscriptions map[string]string // subjects by subscription id
}

// published is one message in the form in which a client publishes it.
type published struct {
	subject, reply string
	header         http.Header
	data           []byte
}

const greeting = `INFO {"server_id":"S","server_name":"simulated","version":"2.14.0","proto":1,"headers":true,"jetstream":true,"max_payload":8388608,"client_id":1}` + "\r\n"

// serve reads what the client sends until the connection is closed.
func (c *connection) serve() {
	c.send(0, []byte(greeting))
	in := bufio.NewReader(c)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		fields := strings.Fields(line)
		switch strings.ToUpper(fields[0]) {
		case "PING":
			c.send(0, []byte("PONG\r\n"))
		case "SUB":
			c.subscribe(fields[len(fields)-1], fields[1])
		case "PUB", "HPUB":
			m, err := readPublished(in, fields)
			if err != nil {
				return
			}
			c.network.take(c, m)
		}
	}
}

func (c *connection) subscribe(id, subject string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.subscriptions[id] = subject
}

// readPublished reads the rest of PUB subject [reply] size, or of HPUB subject [reply] header
// size.
func readPublished(in *bufio.Reader, fields []string) (*published, error) {
	m := &published{subject: fields[1]}
	sizes := fields[len(fields)-1:]
	if strings.EqualFold(fields[0], "HPUB") {
		sizes = fields[len(fields)-2:]
	}
	if len(fields)-len(sizes) == 3 {
		m.reply = fields[2]
	}
	all, err := strconv.Atoi(sizes[len(sizes)-1])
	if err != nil {
		return nil, err
	}
	payload := make([]byte, all+len("\r\n"))
	if _, err := io.ReadFull(in, payload); err != nil {
		return nil, err
	}
	head := 0
	if len(sizes) == 2 {
		if head, err = strconv.Atoi(sizes[0]); err != nil {
			return nil, err
		}
		_, lines, _ := strings.Cut(string(payload[:head]), "\r\n") // after NATS/1.0
		header, err := textproto.NewReader(bufio.NewReader(strings.NewReader(lines))).ReadMIMEHeader()
		if err != nil {
			return nil, err
		}
		m.header = http.Header(header)
	}
	m.data = payload[head:all]
	return m, nil
}

// answer sends a message to a subject after a delay.
func (c *connection) answer(after time.Duration, subject string, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, pattern := range c.subscriptions {
		if prefix, open := strings.CutSuffix(pattern, "*"); pattern == subject || open && strings.HasPrefix(subject, prefix) {
			c.send(after, fmt.Appendf(nil, "MSG %s %s %d\r\n%s\r\n", subject, id, len(data), data))
			return
		}
	}
}

// send writes to the client after a delay, because the client may not be reading now.
func (c *connection) send(after time.Duration, text []byte) {
	time.AfterFunc(after, func() {
		c.writing.Lock()
		defer c.writing.Unlock()
		_, _ = c.Write(text) // the connection may be closed
	})
}
