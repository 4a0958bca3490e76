package stream

import (
	"context"
	"fmt"

	"github.com/plumbline/plumbline/pipeline/subject"
)

// CoherenceResult is one message of stream COHERENCE.
type CoherenceResult struct {
	Initiator string // the agent that began the handshake
	ID        string // of the handshake, unchanged when it is published again
	Data      []byte // JSON
}

// PublishCoherence returns when the result is stored. A result with the same id within the
// duplicate window is stored once.
func (c *Client) PublishCoherence(ctx context.Context, result CoherenceResult) error {
	message := []entry{{subject: subject.Coherence(result.Initiator), id: result.ID, data: result.Data}}
	if err := c.publish(ctx, message); err != nil {
		return fmt.Errorf("publish the result of a handshake: %w", err)
	}
	return nil
}
