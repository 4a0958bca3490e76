package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// ErrStuck is wrapped by an error of Settle that a retry will hardly remove and that does not
// affect other items.
var ErrStuck = errors.New("somebody has to look at it")

// List is a persistent list of items with the function that processes them. T must encode as
// JSON.
type List[T any] struct {
	Name     string                           // name of the external service, for errors and the log
	Dir      string                           // directory of this list alone
	Ready    func(context.Context) error      // returns nil if the service is available; called first and after a failure; optional
	Settle   func(context.Context, *T) error  // processes an item; must be idempotent
	Settled  func(context.Context, []T) error // called with finished items before they leave the list; optional
	Parallel int                              // how many items are processed at a time
	Log      *slog.Logger
	Failed   func()          // called after each failed attempt; optional
	Waiting  func(count int) // called with the number of items that wait; optional

	files *files[T]
	woken chan struct{}

	row     atomic.Int64 // failures since the last success
	mu      sync.Mutex
	failing bool                 // the failure of the service has been logged
	stuck   map[string]time.Time // stuck items with the time of their last attempt
}

const (
	firstPause   = time.Second
	longestPause = 5 * time.Minute
	// After mostFailures in a row the list pauses.
	mostFailures = 3
)

// Open reads the list. Call it before any other method.
func (l *List[T]) Open() (err error) {
	l.woken, l.stuck = make(chan struct{}, 1), map[string]time.Time{}
	if l.files, err = openFiles[T](l.Dir); err != nil {
		return fmt.Errorf("what waits for %s: %w", l.Name, err)
	}
	l.tellWaiting()
	return nil
}

// Add stores items durably, all in one file. An item may be added twice.
func (l *List[T]) Add(items ...T) error {
	if len(items) == 0 {
		return nil
	}
	if err := l.files.add(items); err != nil {
		return fmt.Errorf("note what waits for %s: %w", l.Name, err)
	}
	l.tellWaiting()
	select {
	case l.woken <- struct{}{}:
	default: // it will look at the list anyway
	}
	return nil
}

// Len returns the number of items that wait.
func (l *List[T]) Len() int { return l.files.waiting() }

// Run processes items until ctx ends. After failures it pauses, longer each time.
func (l *List[T]) Run(ctx context.Context) error {
	pause := firstPause
	for ready := false; ; {
		settled, failed := l.round(ctx, ready)
		ready = !failed
		if settled > 0 || !failed {
			pause = firstPause
		}
		again, woken := time.After(longestPause), l.woken
		if failed {
			again, woken = time.After(pause), nil // a new item does not end the pause
			pause = min(2*pause, longestPause)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-woken:
		case <-again:
		}
	}
}
