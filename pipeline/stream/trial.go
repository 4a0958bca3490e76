package stream

import (
	"context"
	"fmt"
)

// trialBytes is more than a block of the disk, so that each trial needs room of its own
// where the message before it ended.
const trialBytes = 8 << 10

// trialKey is a key that no handshake message has. Its bucket forgets it after
// HandshakeMemory, and keeps one revision of it.
const trialKey = "trial"

// Trial has the broker store a small message, which replaces the one before it, and
// returns nil when it is stored. A broker whose disk is full answers a Ping all the same;
// some of its errors leave a publisher without any answer.
func (c *Client) Trial(ctx context.Context) error {
	subject := "$KV." + Handshakes + "." + trialKey
	err := c.unlessRefused(ctx, func(ctx context.Context) error {
		_, err := c.js.Publish(ctx, subject, make([]byte, trialBytes))
		return classify(err)
	}, subject)
	if err != nil {
		return fmt.Errorf("store a message for trial: %w", err)
	}
	return nil
}
