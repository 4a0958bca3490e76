package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// ErrStuck is wrapped by an error of Process that a retry will hardly remove and that does not
// affect other items.
var ErrStuck = errors.New("it needs the operator's attention")

// List is a persistent list of items with the function that processes them. T must encode as
// JSON.
type List[T any] struct {
	Name     string                           // name of the external service, for errors and the log
	Dir      string                           // directory of this list alone
	Ready    func(context.Context) error      // returns nil if the service is available; called first and after a failure; optional
	Process  func(context.Context, *T) error  // processes an item; must be idempotent
	Done     func(context.Context, []T) error // called with processed items before they leave the list; optional
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
	if l.Failed == nil {
		l.Failed = func() {}
	}
	if l.Waiting == nil {
		l.Waiting = func(int) {}
	}
	if l.files, err = openFiles[T](l.Dir); err != nil {
		return fmt.Errorf("open the list for %s: %w", l.Name, err)
	}
	l.Waiting(l.Len())
	return nil
}

// Add stores items durably, all in one file. An item may be added twice.
func (l *List[T]) Add(items ...T) error {
	if len(items) == 0 {
		return nil
	}
	if err := l.files.add(items); err != nil {
		return fmt.Errorf("add to the list for %s: %w", l.Name, err)
	}
	l.Waiting(l.Len())
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
		done, failed := l.round(ctx, ready)
		ready = !failed
		if done > 0 || !failed {
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

// round tries each item once, in random order of files. It stops early when the external service
// seems unavailable. It returns how many items are done, and whether anything failed.
func (l *List[T]) round(ctx context.Context, ready bool) (done int, failed bool) {
	l.row.Store(0)
	if !ready && l.Ready != nil {
		if err := l.Ready(ctx); err != nil {
			l.fail(ctx, err)
			return 0, true
		}
	}
	names := l.files.names()
	rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names {
		if l.unavailable(ctx) {
			break
		}
		n, ok := l.file(ctx, name)
		done, failed = done+n, failed || !ok
		l.Waiting(l.Len())
	}
	if !failed && ctx.Err() == nil {
		l.recovered()
	}
	return done, failed
}

// unavailable reports whether to stop trying: too many failures in a row, or ctx ended.
func (l *List[T]) unavailable(ctx context.Context) bool {
	return l.row.Load() >= mostFailures || ctx.Err() != nil
}

// file tries the items of a file, reports those that are done, and then removes them. It returns
// how many are removed. ok is false after a failure that concerns more than one item.
func (l *List[T]) file(ctx context.Context, name string) (removed int, ok bool) {
	items, err := l.files.read(name)
	if err != nil {
		l.fail(ctx, err)
		return 0, false
	}
	var failed atomic.Bool
	processed := make([]bool, len(items))
	var group errgroup.Group
	group.SetLimit(max(1, l.Parallel))
	for i := range items {
		group.Go(func() error {
			err := l.attempt(ctx, &items[i])
			processed[i] = err == nil
			if err != nil && !errors.Is(err, ErrStuck) {
				failed.Store(true)
			}
			return nil
		})
	}
	_ = group.Wait() // the results are in processed and failed
	var done, left []T
	for i, item := range items {
		if processed[i] {
			done = append(done, item)
		} else {
			left = append(left, item)
		}
	}
	if len(done) > 0 {
		if l.Done != nil {
			err = l.Done(ctx, done)
		}
		if err == nil {
			err = l.files.keep(name, left)
		}
		if err != nil {
			l.fail(ctx, err)
			return 0, false
		}
	}
	return len(done), !failed.Load()
}

var errNotAttempted = errors.New("not attempted in this round")

// attempt processes one item. It tries a stuck item again only after the longest pause.
func (l *List[T]) attempt(ctx context.Context, item *T) error {
	if l.unavailable(ctx) {
		return errNotAttempted
	}
	line, err := json.Marshal(item)
	if err != nil {
		return err
	}
	key := string(line)
	l.mu.Lock()
	tried, stuck := l.stuck[key]
	l.mu.Unlock()
	if stuck && time.Since(tried) < longestPause {
		return ErrStuck
	}
	switch err := l.Process(ctx, item); {
	case err == nil:
		l.row.Store(0)
		l.mu.Lock()
		delete(l.stuck, key)
		l.mu.Unlock()
		return nil
	case errors.Is(err, ErrStuck):
		l.mu.Lock()
		l.stuck[key] = time.Now()
		l.mu.Unlock()
		l.Failed()
		if !stuck {
			l.Log.Error("an item failed and will be retried later; the others continue", "for", l.Name, "error", err)
		}
		return err
	default:
		l.fail(ctx, err)
		return err
	}
}

// fail records a failure of the external service, and logs the first in a row. It ignores
// failures after ctx ended.
func (l *List[T]) fail(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	l.row.Add(1)
	l.Failed()
	l.mu.Lock()
	known := l.failing
	l.failing = true
	l.mu.Unlock()
	if !known {
		l.Log.Warn("delivery failed; will retry", "for", l.Name, "waiting", l.Len(), "error", err)
	}
}

// recovered logs that the external service works again after a failure.
func (l *List[T]) recovered() {
	l.mu.Lock()
	known := l.failing
	l.failing = false
	l.mu.Unlock()
	if known {
		l.Log.Info("delivery works again", "for", l.Name, "waiting", l.Len())
	}
}
