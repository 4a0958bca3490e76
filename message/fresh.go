package message

import (
	"errors"
	"fmt"
	"time"
)

// DefaultWindow is how far a message's time may be from now, in both directions.
const DefaultWindow = 5 * time.Minute

// ErrStale means that the message's time is outside the replay window.
var ErrStale = errors.New("outside the replay window")

// Fresh returns ErrStale when at is further from now than the window. Within the window a
// message may still be a replay, which its nonce shows.
func Fresh(at, now time.Time, window time.Duration) error {
	if age := now.Sub(at); age > window || age < -window {
		return fmt.Errorf("%w: the message is of %s, it is %s now, and %s are allowed between them",
			ErrStale, at.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339), window)
	}
	return nil
}
