package stream

import (
	"context"
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
	c.cfg.Logger.Info("connection to the broker is back", "url", conn.ConnectedUrlRedacted())
}

// within returns a context for one request. The context ends after d, or when the connection is
// lost. While the connection is lost, within waits until it is back.
func (c *Client) within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, d)
	stop := context.AfterFunc(c.standing(ctx), cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// standing returns a connected link, or a lost one if ctx ends first.
func (c *Client) standing(ctx context.Context) *link {
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
