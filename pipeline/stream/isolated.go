package stream

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
)

// looksBeforeLeaving is how many checks in a row must fail before the client moves to another
// server.
const looksBeforeLeaving = 3

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
		if failures < looksBeforeLeaving {
			continue
		}
		failures = 0
		c.cfg.Logger.Warn("this server of the broker has no JetStream, it may be cut off from the others: another one is asked for",
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
