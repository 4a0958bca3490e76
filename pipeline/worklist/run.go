package worklist

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// ErrStuck is wrapped by what Settle returns about an item that trying again will
// hardly settle, and that says nothing of the others.
var ErrStuck = errors.New("somebody has to look at it")

// List is a list of items and what is done about them. T is written as JSON.
type List[T any] struct {
	Name     string                           // of what is waited for, in errors and in the log
	Dir      string                           // of this list alone
	Ready    func(context.Context) error      // tells whether what is outside is there: asked first, and after a failure; may be nil
	Settle   func(context.Context, *T) error  // does what an item waits for; the same again changes nothing
	Settled  func(context.Context, []T) error // is told of settled items before they leave the list; may be nil
	Parallel int                              // how many are settled at a time
	Log      *slog.Logger
	Failed   func()          // is told of each attempt in vain; may be nil
	Waiting  func(count int) // is told how many wait; may be nil

	files *files[T]
	woken chan struct{}

	row     atomic.Int64 // failures since the last success
	mu      sync.Mutex
	failing bool                 // it was told that what is outside is away
	stuck   map[string]time.Time // items that are stuck, and when they were tried last
}

const (
	firstPause   = time.Second
	longestPause = 5 * time.Minute
	// mostFailures in a row are enough to leave what is outside alone for a while.
	mostFailures = 3
)

// Open reads the list. It is called before all else.
func (l *List[T]) Open() (err error) {
	l.woken, l.stuck = make(chan struct{}, 1), map[string]time.Time{}
	if l.files, err = openFiles[T](l.Dir); err != nil {
		return fmt.Errorf("what waits for %s: %w", l.Name, err)
	}
	l.tellWaiting()
	return nil
}

// Add notes items durably, with one file for all of them. The same may be added twice.
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
	default: // it will look already
	}
	return nil
}

// Len is how many items wait.
func (l *List[T]) Len() int { return l.files.waiting() }

// Run settles what waits, until ctx ends. After failures it pauses, longer each time.
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
			again, woken = time.After(pause), nil // what is added does not cut the pause short
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
