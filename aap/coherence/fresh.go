package coherence

import (
	"errors"
	"fmt"
	"time"
)

// FreshWindow is how far the time of a message may be from the receiver's clock, before or
// after it. Answered requests must be remembered for twice as long.
const FreshWindow = 300 * time.Second

// The reasons to refuse a message by section 9.4.
var (
	ErrStale  = errors.New("the message is too old")
	ErrFuture = errors.New("the message is of the future")
)

// Fresh checks that a message sent at the given time may be answered at now. Both bounds are
// inside the window. The error wraps ErrStale or ErrFuture.
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
