package stream

import (
	"context"
	"fmt"

	"github.com/plumbline/plumbline/pipeline/subject"
)

// CoherenceResult is one message of stream COHERENCE.
type CoherenceResult struct {
	Initiator string // the agent that began the handshake
	ID        string // of the handshake, the same however often it is published
	Data      []byte // JSON
}

// PublishCoherence returns when the result is stored. The same id again within
// the duplicate window is stored once.
func (c *Client) PublishCoherence(ctx context.Context, result CoherenceResult) error {
	message := []entry{{subject: subject.Coherence(result.Initiator), id: result.ID, data: result.Data}}
	if err := c.publish(ctx, message); err != nil {
		return fmt.Errorf("publish the result of a handshake: %w", err)
	}
	return nil
}
