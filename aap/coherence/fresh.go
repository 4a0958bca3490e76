package coherence

import (
	"errors"
	"fmt"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// FreshWindow is how far the time of a message may be from the receiver's
// clock, before or after it. Replay keys must be remembered for twice as long.
const FreshWindow = 300 * time.Second

// What is wrong with a message that is refused by section 9.4.
var (
	ErrStale    = errors.New("the message is too old")
	ErrFuture   = errors.New("the message is of the future")
	ErrReplayed = errors.New("the message was received before") // for who keeps the keys
)

// Fresh checks that a message of the time sent may be answered at now: both
// bounds of the window belong to it. The error is ErrStale or ErrFuture, wrapped.
func Fresh(sent, now time.Time) error {
	age := now.Sub(sent)
	switch {
	case age > FreshWindow:
		return fmt.Errorf("%w: %s old, at most %s are allowed", ErrStale, age, FreshWindow)
	case age < -FreshWindow:
		return fmt.Errorf("%w: %s ahead, at most %s are allowed", ErrFuture, -age, FreshWindow)
	}
	return nil
}

// ReplayKey identifies a message: the same key a second time is a replay. One
// request_id runs through all four messages, so the type is part of the key.
type ReplayKey struct {
	Agent     string // who sent it
	RequestID string
	Type      schema.MessageType
}

// KeyOf returns the key of a message that agent sent.
func KeyOf(agent string, m schema.Handshake) ReplayKey {
	return ReplayKey{Agent: agent, RequestID: m.ID(), Type: m.Type()}
}

// String returns the key as one text, the same for no other key.
func (k ReplayKey) String() string { return fmt.Sprintf("%q %q %s", k.Agent, k.RequestID, k.Type) }
