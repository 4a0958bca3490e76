package sim

import (
	"bufio"
	"encoding/json"
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

	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/schema"
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

// Dial implements stream.Config.Dial.
func (n *Network) Dial(string, string) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down {
		return nil, errors.New("connection refused")
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
			c.mu.Lock()
			c.subscriptions[fields[len(fields)-1]] = fields[1]
			c.mu.Unlock()
		case "PUB", "HPUB":
			m, err := readPublished(in, fields)
			if err != nil {
				return
			}
			c.network.take(c, m)
		}
	}
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

// The errors of the server.
const (
	unavailable    = `{"error":{"code":503,"err_code":10008,"description":"JetStream system temporarily unavailable"}}`
	storeFailed    = `{"error":{"code":503,"err_code":10077,"description":"maximum bytes exceeded"}}`
	notFound       = `{"error":{"code":404,"err_code":10037,"description":"no message found"}}`
	batchDuplicate = `{"error":{"code":400,"err_code":10201,"description":"atomic publish batch contains duplicate message id"}}`
	incomplete     = `{"error":{"code":400,"err_code":10176,"description":"atomic publish batch is incomplete"}}`
)

// take handles a message of a client under its fault.
func (n *Network) take(c *connection, m *published) {
	w := n.process.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if n.process.dead {
		return
	}
	name := "publish " + m.subject
	if !strings.HasPrefix(m.subject, "$JS.API.") {
		name += " " + schema.DigestOf(m.data).String()[:8] // its id may be random
	}
	dice := w.dice(name)
	e := w.note(n.process.life, name, w.fault(dice))
	wait := time.Duration(1 + dice.Int64N(int64(travel)))
	switch e.fault {
	case killBefore:
		n.kill()
		return
	case lost:
		// A server that has applied nothing returns an error, or does not answer and the connection is lost.
		if text := []string{unavailable, storeFailed, ""}[dice.IntN(3)]; text != "" && m.reply != "" {
			e.answer = text
			c.answer(wait, m.reply, []byte(text))
			return
		}
		go n.Cut()
		return
	case hangs:
		return
	case slow:
		wait += time.Duration(dice.Int64N(int64(requestLimit)))
	}
	text := n.apply(m)
	e.answer = text
	switch e.fault {
	case killAfter:
		n.kill()
		return
	case unsure:
		go n.Cut()
		return
	case hangsAfter:
		return
	}
	if m.reply != "" {
		c.answer(wait, m.reply, []byte(text))
	}
}

func (n *Network) kill() {
	n.process.die()
	go n.Close()
}

// apply executes the request in a message and returns the answer.
func (n *Network) apply(m *published) string {
	if name, ok := strings.CutPrefix(m.subject, "$JS.API.STREAM.INFO."); ok {
		s := n.process.world.streams[name]
		state := s.state()
		return fmt.Sprintf(`{"type":"io.nats.jetstream.api.v1.stream_info_response","config":{"name":%q},"created":%q,"state":{"messages":%d,"first_seq":%d,"last_seq":%d}}`,
			s.Name, s.Created.Format(time.RFC3339Nano), state.Messages, state.FirstSequence, state.LastSequence)
	}
	if name, ok := strings.CutPrefix(m.subject, "$JS.API.STREAM.MSG.GET."); ok {
		return streamMessage(n.process.world.streams[name], m.data)
	}
	if m.header.Get("Nats-Batch-Id") != "" {
		return n.batch(m)
	}
	s, stored := n.route(m)
	sequence, duplicate := s.append(stored)
	return fmt.Sprintf(`{"stream":%q,"seq":%d,"duplicate":%t}`, s.Name, sequence, duplicate)
}

// route finds the stream of a message, and returns the form in which it is stored.
func (n *Network) route(m *published) (*Stream, Stored) {
	stored := Stored{Subject: m.subject, ID: m.header.Get("Nats-Msg-Id"), Data: m.data}
	token, isTrace := strings.CutPrefix(m.subject, subject.Trace(""))
	if !isTrace {
		return n.process.world.streams[stream.DeadLetters], stored
	}
	agent, err := subject.Agent(token)
	if err != nil {
		panic(err) // our own client wrote it
	}
	stored.Agent, stored.Partition = agent, subject.Partition(agent)
	stored.Subject = fmt.Sprintf("traces.%d.%s", stored.Partition, token)
	return n.process.world.streams[stream.Traces], stored
}

// batch handles a message of an atomic batch. The batch is stored completely when its last
// message arrives, or not at all.
func (n *Network) batch(m *published) string {
	id := m.header.Get("Nats-Batch-Id")
	place, err := strconv.Atoi(m.header.Get("Nats-Batch-Sequence"))
	if err != nil || place != len(n.batches[id])+1 {
		delete(n.batches, id)
		return incomplete
	}
	n.batches[id] = append(n.batches[id], m)
	if m.header.Get("Nats-Batch-Commit") == "" {
		return ""
	}
	members := n.batches[id]
	delete(n.batches, id)
	ids := map[string]bool{}
	for _, member := range members {
		s, stored := n.route(member)
		if _, known := s.known(stored.ID); known || ids[stored.ID] {
			return batchDuplicate
		}
		ids[stored.ID] = true
	}
	var last uint64
	for _, member := range members {
		s, stored := n.route(member)
		last, _ = s.append(stored)
	}
	s, _ := n.route(m)
	return fmt.Sprintf(`{"stream":%q,"seq":%d,"batch":%q,"count":%d}`, s.Name, last, id, len(members))
}

// streamMessage answers {"seq": n}.
func streamMessage(s *Stream, question []byte) string {
	var asked struct {
		Sequence uint64 `json:"seq"`
	}
	if err := json.Unmarshal(question, &asked); err != nil || asked.Sequence == 0 || asked.Sequence > s.last() {
		return notFound
	}
	m := s.At(asked.Sequence)
	answer, err := json.Marshal(map[string]any{"message": map[string]any{
		"subject": m.Subject, "seq": asked.Sequence, "data": m.Data, "time": m.Received,
	}})
	if err != nil {
		panic(err) // texts and numbers can always be encoded
	}
	return string(answer)
}
