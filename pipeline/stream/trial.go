package stream

import (
	"context"
	"fmt"
)

// trialBytes is more than a block of the disk, so each trial needs new space, even where the
// previous message ended.
const trialBytes = 8 << 10

// trialKey is a key that no handshake message has. Its bucket forgets it after HandshakeMemory,
// and keeps one revision of it.
const trialKey = "trial"

// Trial makes the broker store a small message, which replaces the previous one, and returns nil
// when it is stored. A broker with a full disk still answers a Ping, and for some of its errors a
// publisher gets no answer.
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
