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
// The client library's own reader takes every empty message with a header Status for one of
// the server's control messages: an agent that published one would stop all reading. Here the
// reply subject decides, which the server writes.
//
// One request is open at a time. It is for as many messages and bytes as the queue has room
// for. The next one is sent when it is over and the queue is half empty, by both. A request is
// over when its last message or byte came, when the server says so, when the connection was
// lost, or when the server was silent for longer than silentRequest, in spite of the heartbeats
// it owes. A message for which a request has no room is asked for alone, without a bound, when
// the queue is empty.
type pull struct {
	client *Client
	cfg    *ConsumerConfig
	next   string // subject of requests
	sub    *nats.Subscription
	inbox  string        // requests are answered below it
	closed chan struct{} // the subscription has brought its last message

	awaited func() // ends waiting for refusals

	mu    sync.Mutex
	queue []*nats.Msg
	bytes int           // of the queue, as the server counts them
	came  chan struct{} // has one element when something was queued or has ended
	// Of the request that was sent last:
	number   int
	open     int   // messages that it may still bring; 0: it is over
	room     int   // bytes that it may still bring
	barren   bool  // it has brought no message
	tooLarge bool  // it ended because it has no room for the first message
	fault    error // why it ended early
	link     *link
	heard    time.Time // when it was sent, or last answered
}

// pullRequest is the request of ADR-13 of the server's architecture.
type pullRequest struct {
	Batch     int           `json:"batch"`
	MaxBytes  int           `json:"max_bytes"` // 0: no bound
	Expires   time.Duration `json:"expires"`
	Heartbeat time.Duration `json:"idle_heartbeat"`
}

// errSilent: the request got lost.
var errSilent error = &unavailable{cause: errors.New("the server does not answer a request for messages"), after: retrySoon}

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
	return p, p.sub.SetPendingLimits(-1, -1) // what is asked for bounds it
}

// receive queues a message, or notes what the server says of the request.
func (p *pull) receive(m *nats.Msg) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case strings.HasPrefix(m.Reply, ackOld): // of an earlier request, perhaps: then the next one is sent sooner
		p.queue = append(p.queue, m)
		p.bytes += m.Size()
		p.room -= m.Size()
		p.barren = false
		if p.open--; p.open < 0 || p.room <= 0 { // the server does not say that a request has all its bytes
			p.open = 0
		}
	case m.Subject != p.reply():
		return // an earlier request is over
	case m.Header.Get("Status") != "100": // that is a heartbeat
		p.open, p.fault = 0, endOf(m.Header)
		p.tooLarge = p.barren && noRoom(m.Header)
	}
	p.heard = time.Now()
	p.signal()
}

// refuse ends the current request, which the server refuses.
func (p *pull) refuse(r *refusal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open, p.fault = 0, r
	p.signal()
}

// reply is where the current request is answered. A message comes there under the subject
// that it was published under; what the server says comes under this one.
func (p *pull) reply() string { return p.inbox + "." + strconv.Itoa(p.number) }

func (p *pull) signal() {
	select {
	case p.came <- struct{}{}:
	default:
	}
}

// endOf returns what is wrong where the server ends a request; nil where nothing is.
func endOf(status nats.Header) error {
	code, text := status.Get("Status"), status.Get("Description")
	switch {
	case code == "404", code == "408", noRoom(status), text == "Batch Completed",
		text == "Server Shutdown", text == "Leadership Change": // another one, or the same one again, answers the next request
		return nil
	case code == "503":
		return nats.ErrNoResponders
	case text == "Consumer Deleted":
		return jetstream.ErrConsumerDeleted
	}
	return &unavailable{cause: fmt.Errorf("the server ended a request for messages: %s %s", code, text), after: retrySoon}
}

// noRoom reports whether the server ends a request because the next message is larger than
// what is left of its bytes.
func noRoom(status nats.Header) bool {
	return strings.HasPrefix(status.Get("Description"), "Message Size Exceeds")
}

// forgotten reports whether the server no longer knows the consumer.
func forgotten(err error) bool {
	return errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrConsumerDeleted)
}

// ask sends a request where one is due, and returns why the last one ended early.
func (p *pull) ask() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) > p.cfg.PrefetchMessages/2 || p.bytes > p.cfg.PrefetchBytes/2 || (p.open > 0 || p.tooLarge) && len(p.queue) > 0 {
		return nil
	}
	link := p.client.link.Load()
	if link.Err() != nil {
		return nil // the connection is lost: a request of before is, too
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

// take returns the next message. It waits until ctx ends, and returns its error then.
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
