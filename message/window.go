package message

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// DefaultWindow is how far a message's time may be from now, in both directions.
const DefaultWindow = 5 * time.Minute

// Errors of Window.Admit.
var (
	ErrStale    = errors.New("outside the replay window")
	ErrReplayed = errors.New("this nonce was seen before")
	ErrCrowded  = errors.New("too many nonces within the replay window")
)

// Window admits each nonce once. A nonce is remembered for as long as a message
// that carries it could be fresh; memory is bounded by what comes in that time, and
// by most. Safe for concurrent use.
type Window struct {
	width time.Duration
	most  int

	mu     sync.Mutex
	recent map[string]struct{} // of the current interval of 2·width
	older  map[string]struct{} // of the one before
	turned time.Time           // when recent was begun
}

// NewWindow returns a window of that width on both sides of now that remembers at
// most so many nonces.
func NewWindow(width time.Duration, most int) *Window {
	return &Window{width: width, most: most, recent: map[string]struct{}{}}
}

// Admit takes a message's nonce, once. Errors: ErrStale when at is further from
// now than the width, ErrReplayed, or ErrCrowded: then the message is to be
// refused, since forgetting a nonce would let it be replayed.
func (w *Window) Admit(nonce string, at, now time.Time) error {
	if age := now.Sub(at); age > w.width || age < -w.width {
		return fmt.Errorf("%w: the message is of %s, it is %s now, and %s are allowed between them",
			ErrStale, at.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339), w.width)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.turn(now)
	if w.seen(nonce) {
		return ErrReplayed
	}
	if len(w.recent)+len(w.older) >= w.most {
		return ErrCrowded
	}
	w.recent[nonce] = struct{}{}
	return nil
}

// Seen tells whether a nonce was admitted and is still remembered.
func (w *Window) Seen(nonce string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen(nonce)
}

func (w *Window) seen(nonce string) bool {
	_, recent := w.recent[nonce]
	_, older := w.older[nonce]
	return recent || older
}

// turn begins a new interval when the current one is over. A message is fresh for
// at most 2·width, so that two intervals of that length hold every nonce long
// enough.
func (w *Window) turn(now time.Time) {
	switch since := now.Sub(w.turned); {
	case since >= 4*w.width:
		w.recent, w.older, w.turned = map[string]struct{}{}, nil, now
	case since >= 2*w.width:
		w.recent, w.older, w.turned = map[string]struct{}{}, w.recent, now
	}
}
