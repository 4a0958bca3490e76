package stream

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// link is the connection from one loss to the next. Its context ends at a loss, so nobody waits
// for an answer that can no longer arrive.
type link struct {
	context.Context
	cut  context.CancelFunc
	lost atomic.Pointer[time.Time] // nil while connected
	next chan struct{}             // closed when the next link is connected
}

func newLink() *link {
	l := &link{next: make(chan struct{})}
	l.Context, l.cut = context.WithCancel(context.Background())
	return l
}

func (c *Client) disconnected(_ *nats.Conn, err error) {
	now, lost := time.Now(), c.link.Load()
	lost.lost.CompareAndSwap(nil, &now)
	lost.cut()
	if err != nil {
		c.cfg.Logger.Warn("connection to the broker lost", "error", err)
	}
}

func (c *Client) reconnected(conn *nats.Conn) {
	close(c.link.Swap(newLink()).next)
	c.cfg.Logger.Info("connected to the broker again", "url", conn.ConnectedUrlRedacted())
}

// within returns a context for one request. The context ends after d, or when the connection is
// lost. While the connection is lost, within waits until it is back.
func (c *Client) within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, d)
	stop := context.AfterFunc(c.connectedLink(ctx), cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// connectedLink waits for a connected link. It returns a lost one if ctx ends first.
func (c *Client) connectedLink(ctx context.Context) *link {
	for {
		l := c.link.Load()
		if l.Err() == nil {
			return l
		}
		select {
		case <-l.next:
		case <-ctx.Done():
			return l
		}
	}
}

// away reports whether the connection has been lost for so long that waiting is useless.
func (c *Client) away() bool {
	since := c.link.Load().lost.Load()
	return since != nil && time.Since(*since) > c.cfg.Timeout
}

// failuresBeforeLeaving is how many checks in a row must fail before the client moves to another
// server.
const failuresBeforeLeaving = 3

// leaveIsolated leaves a server that is connected but has had no JetStream for a while. It runs
// until the client is closed. Such a server may be cut off from its peers, which continue without
// it, and the connection to it would last as long as the server does. If no server has a
// majority, the client tries one after another, which is harmless.
func (c *Client) leaveIsolated(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for failures := 0; ; {
		select {
		case <-c.closed.Done():
			return
		case <-tick.C:
		}
		if failures++; c.answers(every) || c.conn.Status() != nats.CONNECTED { // it may be lost meanwhile
			failures = 0
		}
		if failures < failuresBeforeLeaving {
			continue
		}
		failures = 0
		c.cfg.Logger.Warn("this server has no JetStream and may be cut off from its cluster; connecting to another one",
			"url", c.conn.ConnectedUrlRedacted())
		if err := c.conn.ForceReconnect(); err != nil {
			return // the client is closed
		}
	}
}

// answers reports whether JetStream answers within the time. An error answer counts.
func (c *Client) answers(within time.Duration) bool {
	ctx, cancel := context.WithTimeout(c.closed, within)
	defer cancel()
	return !errors.Is(c.Ping(ctx), ErrUnavailable)
}
