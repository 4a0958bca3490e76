package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// pull asks the server for the messages of one consumer and queues what it sends.
//
// The client library's own reader treats every empty message with a header Status as one of the
// server's control messages: an agent that published one would stop all reading. Here the reply
// subject decides, which the server writes.
//
// One request is open at a time. It asks for as many messages and bytes as the queue has room
// for. The next one is sent when the current one is over and the queue is half empty, both in
// messages and in bytes. A request is over when its last message or byte arrived, when the server
// reports its end, when the connection was lost, or when the server was silent for longer than
// silentRequest although it should send heartbeats. A message that does not fit into a request is
// requested alone, without a limit, when the queue is empty.
//
// What was on its way when a connection was lost never arrives, and a reader acks nothing that the
// server could miss. So a heartbeat tells a reader how many messages the server has delivered.
type pull struct {
	client *Client
	cfg    *ConsumerConfig
	next   string // subject of requests
	sub    *nats.Subscription
	inbox  string        // prefix of the subjects on which requests are answered
	closed chan struct{} // closed when the subscription has delivered its last message

	awaited func() // stops waiting for refusals

	mu    sync.Mutex
	queue []*nats.Msg
	bytes int           // of the queue, as counted by the server
	count uint64        // messages that were ever queued
	came  chan struct{} // holds one element after something was queued or has ended
	// The state of the latest request:
	number   int
	open     int   // messages that it may still deliver; 0: it is over
	room     int   // bytes that it may still deliver
	barren   bool  // it has delivered no message
	tooLarge bool  // it ended because the first message does not fit
	fault    error // why it ended early
	link     *link
	heard    time.Time // when it was sent, or last answered
}

// pullRequest is the request of ADR-13 of the NATS architecture.
type pullRequest struct {
	Batch     int           `json:"batch"`
	MaxBytes  int           `json:"max_bytes"` // 0: no limit
	Expires   time.Duration `json:"expires"`
	Heartbeat time.Duration `json:"idle_heartbeat"`
}

// errSilent means that the request was lost.
var errSilent error = &unavailable{cause: errors.New("the server does not answer a pull request"), after: retrySoon}

// errLost means that the server delivered messages to this reader that never arrived.
var errLost = errors.New("a delivery was lost")

const (
	pullExpiry    = 10 * time.Second
	pullHeartbeat = 2 * time.Second
	silentRequest = 3 * pullHeartbeat
)

func (c *Client) newPull(cfg *ConsumerConfig, consumer string) (*pull, error) {
	p := &pull{
		client: c, cfg: cfg, next: "$JS.API.CONSUMER.MSG.NEXT." + cfg.Stream + "." + consumer,
		inbox: c.conn.NewInbox(), closed: make(chan struct{}), came: make(chan struct{}, 1),
	}
	var err error
	if p.sub, err = c.conn.Subscribe(p.inbox+".*", p.receive); err != nil {
		return nil, err
	}
	p.sub.SetClosedHandler(func(string) { close(p.closed) })
	p.awaited = c.refusals.await(p.refuse, p.next, p.inbox)
	return p, p.sub.SetPendingLimits(-1, -1) // the requests limit it
}

// receive queues a message, or records what the server reports about the request.
func (p *pull) receive(m *nats.Msg) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case strings.HasPrefix(m.Reply, ackOld): // perhaps of an earlier request: then the next one is sent sooner
		p.queue = append(p.queue, m)
		p.count++
		p.bytes += m.Size()
		p.room -= m.Size()
		p.barren = false
		if p.open--; p.open < 0 || p.room <= 0 { // the server does not report that a request has used up its bytes
			p.open = 0
		}
	case m.Subject != p.reply():
		return // an earlier request is over
	case m.Header.Get("Status") == "100": // a heartbeat
		if delivered, err := strconv.ParseUint(m.Header.Get("Nats-Last-Consumer"), 10, 64); err == nil && p.cfg.Durable == "" && delivered > p.count {
			p.open, p.fault = 0, errLost
		}
	default:
		p.open, p.fault = 0, endOf(m.Header)
		p.tooLarge = p.barren && noRoom(m.Header)
	}
	p.heard = time.Now()
	p.signal()
}

func (p *pull) refuse(r *refusal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open, p.fault = 0, r
	p.signal()
}

// reply returns the subject on which the current request is answered. A message arrives there
// with the subject under which it was published. The server's own messages have this subject.
func (p *pull) reply() string { return p.inbox + "." + strconv.Itoa(p.number) }

func (p *pull) signal() {
	select {
	case p.came <- struct{}{}:
	default:
	}
}

// endOf returns the error with which the server ends a request, or nil if it is a normal end.
func endOf(status nats.Header) error {
	code, text := status.Get("Status"), status.Get("Description")
	switch {
	case code == "404", code == "408", noRoom(status), text == "Batch Completed",
		text == "Server Shutdown", text == "Leadership Change": // the next request finds a server
		return nil
	case code == "503":
		return nats.ErrNoResponders
	case text == "Consumer Deleted":
		return jetstream.ErrConsumerDeleted
	}
	return &unavailable{cause: fmt.Errorf("the server ended a pull request: %s %s", code, text), after: retrySoon}
}

// noRoom reports whether the server ends a request because the next message is larger than the
// bytes that are left.
func noRoom(status nats.Header) bool {
	return strings.HasPrefix(status.Get("Description"), "Message Size Exceeds")
}

// ask sends a request if one is due, and returns why the last one ended early.
func (p *pull) ask() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) > p.cfg.PrefetchMessages/2 || p.bytes > p.cfg.PrefetchBytes/2 || (p.open > 0 || p.tooLarge) && len(p.queue) > 0 {
		return nil
	}
	link := p.client.link.Load()
	if link.Err() != nil {
		return nil // the connection is lost, and so are earlier requests
	}
	if p.open > 0 && p.link == link {
		if time.Since(p.heard) < silentRequest {
			return nil
		}
		p.fault = errSilent
	}
	fault := p.fault
	p.open, p.fault = 0, nil
	if fault != nil {
		return fault
	}
	due := pullRequest{Batch: p.cfg.PrefetchMessages - len(p.queue), MaxBytes: p.cfg.PrefetchBytes - p.bytes, Expires: pullExpiry, Heartbeat: pullHeartbeat}
	if p.tooLarge {
		due.Batch, due.MaxBytes = 1, 0
	}
	request, err := json.Marshal(due)
	if err != nil {
		return err
	}
	p.number++
	p.open, p.room, p.barren, p.tooLarge = due.Batch, due.MaxBytes, true, false
	p.link, p.heard = link, time.Now()
	return p.client.conn.PublishRequest(p.next, p.reply(), request)
}

// take returns the next message. It waits until ctx ends, and then returns the error of ctx.
func (p *pull) take(ctx context.Context) (*nats.Msg, error) {
	for {
		if err := p.ask(); err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if m := p.pop(); m != nil {
			return m, nil
		}
		select {
		case <-p.came:
		case <-time.After(pullHeartbeat / 2): // a request may be due
		case <-p.client.closed.Done():
			return nil, jetstream.ErrConnectionClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (p *pull) pop() *nats.Msg {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 {
		return nil
	}
	m := p.queue[0]
	p.queue[0], p.queue = nil, p.queue[1:]
	p.bytes -= m.Size()
	return m
}

// stop ends reading and returns what was queued.
func (p *pull) stop(wait time.Duration) (queued []*nats.Msg) {
	p.awaited()
	if err := p.sub.Drain(); err == nil && wait > 0 {
		select {
		case <-p.closed:
		case <-time.After(wait):
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	queued, p.queue, p.bytes = p.queue, nil, 0
	return queued
}
