package web

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/plumbline/plumbline/pipeline/store"
)

// kept holds the answers of costly queries, one for each set of agents that a token covers. A visitor gets the answer
// that there is while a newer one is on its way, so that a page takes as long with many rows as with few. Visitors who
// come together share one query, and the database works on these queries a tenth of the time at most. The zero value
// holds nothing.
type kept[T any] struct {
	fresh bool // for tests: nothing is held

	mu  sync.Mutex
	all map[string]*entry[T]
}

// entry has the newest answer, which may be an error, and the question that is on its way.
type entry[T any] struct {
	answer *answer[T] // nil: there is none yet
	asking *answer[T] // nil: nobody asks
}

// answer is an answer once done is closed.
type answer[T any] struct {
	done  chan struct{}
	asked time.Time
	took  time.Duration
	value T
	err   error
}

const (
	keptTokens  = 200 // how many sets of agents have an answer; above it, all are forgotten
	keptFor     = 5 * time.Second
	keptShare   = 10                     // an answer is held for so many times the time that it took
	keptError   = 2                      // the same of an error
	keptWait    = 120 * time.Millisecond // how long a visitor waits for a newer answer
	keptTooLong = time.Minute            // an older answer is replaced as soon as there is a newer one
)

// get returns an answer, and whether the visitor should ask again soon: there is none yet (found is false), or it is
// old. An error is an answer, too, so a visitor learns of it who does not wait until a slow database has failed.
func (k *kept[T]) get(ctx context.Context, agents store.Agents, now time.Time, ask func(context.Context) (T, error)) (value T, found, again bool, err error) {
	if k.fresh {
		value, err = ask(ctx)
		return value, true, false, err
	}
	current, asking := k.state(ctx, agents, now, ask)
	if asking != nil {
		wait := time.NewTimer(keptWait)
		defer wait.Stop()
		select {
		case <-asking.done:
			return asking.value, true, false, asking.err
		case <-ctx.Done():
			return value, false, false, ctx.Err()
		case <-wait.C:
		}
	}
	if current == nil {
		return value, false, true, nil
	}
	return current.value, true, current.err == nil && now.Sub(current.asked) > keptTooLong, current.err
}

// state returns the answer that there is, and the one that is on its way; it asks if it is time to.
func (k *kept[T]) state(ctx context.Context, agents store.Agents, now time.Time, ask func(context.Context) (T, error)) (current, asking *answer[T]) {
	key := fmt.Sprintf("%q", agents)
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.all[key]
	if e == nil {
		if k.all == nil || len(k.all) >= keptTokens {
			k.all = map[string]*entry[T]{}
		}
		e = new(entry[T])
		k.all[key] = e
	}
	if e.answer != nil && e.answer.err != nil && now.Sub(e.answer.asked) > max(keptFor, keptError*e.answer.took) {
		e.answer = nil // the database may be there again
	}
	if e.asking == nil && (e.answer == nil || e.answer.err == nil && now.Sub(e.answer.asked) > max(keptFor, keptShare*e.answer.took)) {
		e.asking = &answer[T]{done: make(chan struct{}), asked: now}
		go k.ask(context.WithoutCancel(ctx), e, e.asking, ask) // it does not end with the request: others wait for it, too
	}
	return e.answer, e.asking
}

// ask asks, and makes the answer that of the entry.
func (k *kept[T]) ask(ctx context.Context, e *entry[T], a *answer[T], ask func(context.Context) (T, error)) {
	began := time.Now()
	a.value, a.err = ask(ctx)
	a.took = time.Since(began)
	k.mu.Lock()
	defer k.mu.Unlock()
	e.asking, e.answer = nil, a
	close(a.done)
}
