package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// round tries each item once, in random order of files. It stops early when the external service
// seems unavailable. It returns how many items are done, and whether anything failed.
func (l *List[T]) round(ctx context.Context, ready bool) (settled int, failed bool) {
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
		if l.away(ctx) {
			break
		}
		n, ok := l.file(ctx, name)
		settled, failed = settled+n, failed || !ok
		l.tellWaiting()
	}
	if !failed && ctx.Err() == nil {
		l.recovered()
	}
	return settled, failed
}

// away reports whether to stop trying: too many failures in a row, or ctx ended.
func (l *List[T]) away(ctx context.Context) bool {
	return l.row.Load() >= mostFailures || ctx.Err() != nil
}

// file tries the items of a file. It returns how many of them are done and removed. ok is false
// after a failure that concerns more than one item.
func (l *List[T]) file(ctx context.Context, name string) (settled int, ok bool) {
	items, err := l.files.read(name)
	if err != nil {
		l.fail(ctx, err)
		return 0, false
	}
	var failed atomic.Bool
	done := make([]bool, len(items))
	var group errgroup.Group
	group.SetLimit(max(1, l.Parallel))
	for i := range items {
		group.Go(func() error {
			err := l.attempt(ctx, &items[i])
			done[i] = err == nil
			if err != nil && !errors.Is(err, ErrStuck) {
				failed.Store(true)
			}
			return nil
		})
	}
	_ = group.Wait() // the results are in done and failed
	var finished, left []T
	for i, item := range items {
		if done[i] {
			finished = append(finished, item)
		} else {
			left = append(left, item)
		}
	}
	if err := l.leave(ctx, name, finished, left); err != nil {
		l.fail(ctx, err)
		return 0, false
	}
	return len(finished), !failed.Load()
}

// leave calls Settled and removes the finished items from a file.
func (l *List[T]) leave(ctx context.Context, name string, finished, left []T) error {
	if len(finished) == 0 {
		return nil
	}
	if l.Settled != nil {
		if err := l.Settled(ctx, finished); err != nil {
			return err
		}
	}
	return l.files.keep(name, left)
}

// errLeftAlone says that an item was not tried.
var errLeftAlone = errors.New("not tried now")

// attempt calls Settle for one item. It tries a stuck item again only after the longest pause.
func (l *List[T]) attempt(ctx context.Context, item *T) error {
	if l.away(ctx) {
		return errLeftAlone
	}
	line, err := json.Marshal(item)
	if err != nil {
		return err
	}
	key := string(line)
	if l.stuckLately(key) {
		return ErrStuck
	}
	switch err := l.Settle(ctx, item); {
	case err == nil:
		l.row.Store(0)
		l.unstick(key)
		return nil
	case errors.Is(err, ErrStuck):
		l.stick(key, err)
		return err
	default:
		l.fail(ctx, err)
		return err
	}
}

func (l *List[T]) stuckLately(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	tried, known := l.stuck[key]
	return known && time.Since(tried) < longestPause
}

// stick records that an item is stuck, and logs it the first time.
func (l *List[T]) stick(key string, err error) {
	l.mu.Lock()
	_, known := l.stuck[key]
	l.stuck[key] = time.Now()
	l.mu.Unlock()
	l.tell(l.Failed)
	if !known {
		l.Log.Error("an item is stuck, the others go on", "for", l.Name, "error", err)
	}
}

func (l *List[T]) unstick(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.stuck, key)
}

// fail records a failure of the external service, and logs the first in a row. It ignores
// failures after ctx ended.
func (l *List[T]) fail(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	l.row.Add(1)
	l.tell(l.Failed)
	l.mu.Lock()
	known := l.failing
	l.failing = true
	l.mu.Unlock()
	if !known {
		l.Log.Warn("what is waited for fails: the items are kept, and tried again",
			"for", l.Name, "waiting", l.Len(), "error", err)
	}
}

// recovered logs that the external service works again after a failure.
func (l *List[T]) recovered() {
	l.mu.Lock()
	known := l.failing
	l.failing = false
	l.mu.Unlock()
	if known {
		l.Log.Info("what was waited for works again, the items are done", "for", l.Name, "waiting", l.Len())
	}
}

func (l *List[T]) tell(whom func()) {
	if whom != nil {
		whom()
	}
}

func (l *List[T]) tellWaiting() {
	if l.Waiting != nil {
		l.Waiting(l.Len())
	}
}
