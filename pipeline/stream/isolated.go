package stream

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
)

// looksBeforeLeaving is how many looks in a row must fail before another server is asked for.
const looksBeforeLeaving = 3

// leaveIsolated leaves a server that is connected and has no JetStream for a while, until
// the client is closed: it may be cut off from its peers, which go on without it, and a
// connection to it would last as long as it does. Where no server has a majority, the
// search goes round and harms nobody.
func (c *Client) leaveIsolated(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for failures := 0; ; {
		select {
		case <-c.closed.Done():
			return
		case <-tick.C:
		}
		if failures++; c.answers(every) || c.conn.Status() != nats.CONNECTED { // it may have been lost meanwhile
			failures = 0
		}
		if failures < looksBeforeLeaving {
			continue
		}
		failures = 0
		c.cfg.Logger.Warn("this server of the broker has no JetStream, it may be cut off from the others: another one is asked for",
			"url", c.conn.ConnectedUrlRedacted())
		if err := c.conn.ForceReconnect(); err != nil {
			return // it is closed
		}
	}
}

// answers reports whether JetStream answers, in whatever way, within the time.
func (c *Client) answers(within time.Duration) bool {
	ctx, cancel := context.WithTimeout(c.closed, within)
	defer cancel()
	return !errors.Is(c.Ping(ctx), ErrUnavailable)
}
