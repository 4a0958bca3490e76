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
	keptTooLong = 10 * time.Second       // a visitor who got an older one asks again, if a newer one is on its way

	idleFor   = 5 * time.Minute // how old an answer is that is asked for again although nobody visits
	idleShare = 100             // the database then rests for so many times the time that it took
)

// get returns an answer, and whether the visitor should ask again soon: there is none yet (found is false), or it is
// old. An error is an answer, too, so a visitor learns of it who does not wait until a slow database has failed.
func (k *kept[T]) get(ctx context.Context, agents store.Agents, now time.Time, ask func(context.Context) (T, error)) (value T, found, again bool, err error) {
	if k.fresh {
		value, err = ask(ctx)
		return value, true, false, err
	}
	current, asking := k.state(context.WithoutCancel(ctx), agents, now, keptFor, ask) // it does not end with the request: others wait for it, too
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
	return current.value, true, current.err == nil && asking != nil && now.Sub(current.asked) > keptTooLong, current.err
}

// renew asks for a visitor who may come, if there is no answer or one that is older than idleFor. It waits for the
// answer, and returns how long the database should not be asked for others: ten times as long as the first answer took,
// and a hundred times as long as a later one. An error is not held: a visitor asks for itself.
func (k *kept[T]) renew(ctx context.Context, agents store.Agents, now time.Time, ask func(context.Context) (T, error)) (rest time.Duration) {
	current, asking := k.state(ctx, agents, now, idleFor, ask)
	if asking == nil {
		return 0
	}
	select {
	case <-asking.done:
	case <-ctx.Done():
		return 0
	}
	if asking.err != nil {
		k.forget(agents, asking, current)
	}
	if current == nil {
		return keptShare * asking.took
	}
	return idleShare * asking.took
}

// forget replaces an answer by the one that was before, which may be none.
func (k *kept[T]) forget(agents store.Agents, failed, before *answer[T]) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.all[keyOf(agents)]; e != nil && e.answer == failed {
		e.answer = before
	}
}

// state returns the answer that there is, and the one that is on its way; it asks if there is none, or one that is older
// than least.
func (k *kept[T]) state(ctx context.Context, agents store.Agents, now time.Time, least time.Duration, ask func(context.Context) (T, error)) (current, asking *answer[T]) {
	key := keyOf(agents)
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
	if e.asking == nil && (e.answer == nil || e.answer.err == nil && now.Sub(e.answer.asked) > max(least, keptShare*e.answer.took)) {
		e.asking = &answer[T]{done: make(chan struct{}), asked: now}
		go k.ask(ctx, e, e.asking, ask)
	}
	return e.answer, e.asking
}

// keyOf returns what is different for other agents.
func keyOf(agents store.Agents) string { return fmt.Sprintf("%q", agents) }

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
